//! What changes from one policy to another, in words, and what that means for a status that entities have.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{Descriptor, Lifecycle};

/// One thing that changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescriptorChange {
    /// What it belongs to: `policy`, `statuses`, `edges`, `reason_codes`, `execution`, ….
    pub section: String,
    /// How it changes.
    pub sort: ChangeSort,
    /// Which one.
    pub what: String,
    /// In words: of what changes, what each member was and is; of a row that comes or goes, nothing.
    pub how: Vec<String>,
}

/// How something changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeSort {
    /// Only the second one has it.
    Added,
    /// Only the first one has it.
    Removed,
    /// Both have it, and not the same.
    Changed,
}

impl ChangeSort {
    /// The word used in output.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Changed => "changed",
        }
    }
}

impl DescriptorChange {
    /// As JSON.
    pub fn to_value(&self) -> Value {
        json!({"section": self.section, "change": self.sort.word(), "what": self.what, "how": self.how})
    }
}

/// Everything that changes from `a` to `b`, section by section; empty when they are equal. Whatever a descriptor holds is
/// compared: what comes in a later version of it, too.
pub fn diff(a: &Descriptor, b: &Descriptor) -> Vec<DescriptorChange> {
    let (a, b) = (members(a), members(b));
    let mut changes = Vec::new();
    let mut of_policy = Vec::new();
    for section in SECTIONS
        .iter()
        .copied()
        .chain(a.keys().map(String::as_str).filter(|name| !is_listed(name)))
    {
        let (was, is) = (&a[section], b.get(section).unwrap_or(&Value::Null));
        if was == is {
            continue;
        }
        match (was, is) {
            (Value::Array(was), Value::Array(is)) if section == "verdicts" => rows(section, was, is, &mut changes),
            (Value::Array(was), Value::Array(is)) => keyed(section, was, is, &mut changes),
            (Value::Object(_) | Value::Null, Value::Object(_) | Value::Null) => rule(section, was, is, &mut changes),
            _ => of_policy.push(changed("policy", section, vec![from_to(was, is)])),
        }
    }
    of_policy.extend(changes);
    of_policy
}

/// The sections in the order in which they are told; what is not named here comes after them.
const SECTIONS: [&str; 14] = [
    "kind",
    "name",
    "version",
    "summary",
    "same_status",
    "emits_events",
    "statuses",
    "edges",
    "fields",
    "reason_codes",
    "verdicts",
    "execution",
    "kill",
    "parameters",
];

fn is_listed(name: &str) -> bool {
    SECTIONS.contains(&name)
}

fn members(descriptor: &Descriptor) -> Map<String, Value> {
    match serde_json::to_value(descriptor) {
        Ok(Value::Object(members)) => members,
        _ => unreachable!("a descriptor is an object of JSON values"),
    }
}

fn changed(section: &str, what: &str, how: Vec<String>) -> DescriptorChange {
    DescriptorChange {
        section: section.to_owned(),
        sort: ChangeSort::Changed,
        what: what.to_owned(),
        how,
    }
}

fn one_sided(section: &str, sort: ChangeSort, what: String) -> DescriptorChange {
    DescriptorChange {
        section: section.to_owned(),
        sort,
        what,
        how: Vec::new(),
    }
}

/// Lists whose entries have names; of several with one name the later ones are other entries.
fn keyed(section: &str, was: &[Value], is: &[Value], changes: &mut Vec<DescriptorChange>) {
    let (was, is) = (named(section, was), named(section, is));
    for (name, entry) in &was {
        match is.iter().find(|(other, _)| other == name) {
            None => changes.push(one_sided(section, ChangeSort::Removed, name.clone())),
            Some((_, other)) if entry == other => {}
            Some((_, other)) => changes.push(changed(section, name, members_changed(entry, other))),
        }
    }
    let added = is
        .iter()
        .filter(|(name, _)| !was.iter().any(|(other, _)| other == name));
    changes.extend(added.map(|(name, entry)| {
        let mut change = one_sided(section, ChangeSort::Added, name.clone());
        change.how = traits(entry);
        change
    }));
    let order = |entries: &[(String, &Value)]| entries.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let (was, is) = (order(&was), order(&is));
    if was != is && was.iter().collect::<BTreeSet<_>>() == is.iter().collect::<BTreeSet<_>>() {
        changes.push(changed(
            section,
            "order",
            vec![format!("{} -> {}", was.join(", "), is.join(", "))],
        ));
    }
}

/// Entries with their names, each once.
fn named<'a>(section: &str, entries: &'a [Value]) -> Vec<(String, &'a Value)> {
    let mut all: Vec<(String, &Value)> = Vec::new();
    for entry in entries {
        let mut name = name(section, entry);
        while all.iter().any(|(known, _)| *known == name) {
            name.push_str(" (again)");
        }
        all.push((name, entry));
    }
    all
}

/// What an entry is called.
fn name(section: &str, entry: &Value) -> String {
    let text = |member: &str| entry[member].as_str().unwrap_or_default().to_owned();
    match section {
        "edges" => format!("{} -> {}", text("from"), text("to")),
        "reason_codes" => text("code"),
        "kill" => format!("{} -> {}", words(&entry["killable"]), text("goes_to")),
        "health" if text("spawn_kind").is_empty() => "every other spawn kind".to_owned(),
        "health" => text("spawn_kind"),
        "migrations" => format!("from {}@{}", text("from_name"), text("from_version")),
        "ext" => text("key"),
        _ => text("name"),
    }
}

/// What an entry that comes has beside its name: what is true of it, and what it lists.
fn traits(entry: &Value) -> Vec<String> {
    let Value::Object(members) = entry else {
        return Vec::new();
    };
    let told = members.iter().filter_map(|(name, value)| match value {
        Value::Bool(true) => Some(name.clone()),
        Value::Array(list) if !list.is_empty() => Some(format!("{name}: {}", words(value))),
        _ => None,
    });
    told.collect()
}

/// Rows of which the first that matches decides: their order is part of what they say.
fn rows(section: &str, was: &[Value], is: &[Value], changes: &mut Vec<DescriptorChange>) {
    let (was, is): (Vec<String>, Vec<String>) = (was.iter().map(row).collect(), is.iter().map(row).collect());
    let before = changes.len();
    for (these, those, sort) in [(&was, &is, ChangeSort::Removed), (&is, &was, ChangeSort::Added)] {
        let mut left = those.clone();
        for row in these {
            match left.iter().position(|other| other == row) {
                Some(place) => drop(left.remove(place)),
                None => changes.push(one_sided(section, sort, row.clone())),
            }
        }
    }
    if changes.len() == before {
        changes.push(changed(
            section,
            "order",
            vec!["the first row that matches decides".to_owned()],
        ));
    }
}

/// A verdict row in words.
fn row(row: &Value) -> String {
    let mut conditions = Vec::new();
    match (row["exit_codes"][0].as_i64(), row["exit_codes"][1].as_i64()) {
        (Some(first), Some(last)) if first == last => conditions.push(format!("exit {first}")),
        (Some(first), Some(last)) => conditions.push(format!("exit {first} to {last}")),
        _ => {}
    }
    match row["signals"].as_array().map(Vec::as_slice) {
        None => {}
        Some([]) => conditions.push("any signal".to_owned()),
        Some(_) => conditions.push(format!("signal {}", words(&row["signals"]))),
    }
    for member in ["causes", "evidence", "ext"] {
        if !matches!(&row[member], Value::Null) && row[member] != json!([]) {
            conditions.push(format!("{member} {}", words(&row[member])));
        }
    }
    let when = if conditions.is_empty() {
        "any end".to_owned()
    } else {
        conditions.join(", ")
    };
    format!("{when} -> {}", words(&row["outcome"]))
}

/// An object that is there or not.
fn rule(section: &str, was: &Value, is: &Value, changes: &mut Vec<DescriptorChange>) {
    changes.push(match (was, is) {
        (Value::Null, _) => one_sided(section, ChangeSort::Added, section.to_owned()),
        (_, Value::Null) => one_sided(section, ChangeSort::Removed, section.to_owned()),
        _ => changed(section, section, members_changed(was, is)),
    });
}

/// Each member of two objects that is not the same, in words.
fn members_changed(was: &Value, is: &Value) -> Vec<String> {
    let (Value::Object(was), Value::Object(is)) = (was, is) else {
        return vec![from_to(was, is)];
    };
    let names: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
    let of = |members: &Map<String, Value>, name: &str| members.get(name).cloned().unwrap_or(Value::Null);
    let told = names.into_iter().filter_map(|name| {
        let (was, is) = (of(was, name), of(is, name));
        (was != is).then(|| format!("{name}: {}", from_to(&was, &is)))
    });
    told.collect()
}

fn from_to(was: &Value, is: &Value) -> String {
    format!("{} -> {}", words(was), words(is))
}

/// A value in words.
fn words(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) if text.is_empty() => "\"\"".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(list) if list.is_empty() => "none".to_owned(),
        Value::Array(list) if list.iter().all(|entry| !entry.is_array() && !entry.is_object()) => {
            list.iter().map(words).collect::<Vec<_>>().join(", ")
        }
        Value::Object(members)
            if members.len() == 2 && members.contains_key("status") && members.contains_key("code") =>
        {
            format!("{} ({})", words(&members["status"]), words(&members["code"]))
        }
        other => other.to_string(),
    }
}

/// What a policy means for an entity that has a status and is live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prospect {
    /// It can end.
    CanEnd,
    /// The policy knows the status, and no way from it leads to an end.
    Stranded,
    /// The policy does not know the status.
    Unknown,
    /// The status is an end.
    Ended,
}

/// What a policy means for live entities of a status.
pub fn prospect(lifecycle: &Lifecycle, status: &str) -> Prospect {
    match lifecycle.status(status) {
        None => return Prospect::Unknown,
        Some(status) if status.terminal => return Prospect::Ended,
        Some(_) => {}
    }
    let edges = &lifecycle.descriptor().edges;
    let (mut seen, mut open) = (BTreeSet::from([status]), vec![status]);
    while let Some(from) = open.pop() {
        for edge in edges.iter().filter(|edge| edge.from == from) {
            if lifecycle.is_terminal(&edge.to) {
                return Prospect::CanEnd;
            }
            if seen.insert(&edge.to) {
                open.push(&edge.to);
            }
        }
    }
    Prospect::Stranded
}

#[cfg(test)]
mod tests;
