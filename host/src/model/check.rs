//! Judges a descriptor whole: every problem at once, each with its place.

use std::collections::{HashSet, VecDeque};

use doubts::doubts;
use name::is_name;
use parameters::parameters;
use rules::{rules, times, verdicts};
use vocabulary::{status_declared, vocabulary};

use serde::Serialize;

use super::{ACTOR_KINDS, Descriptor, Edge, Extension, HANDLER_KIND};

mod doubts;
mod functions;
mod handler;
mod lease;
mod name;
mod parameters;
mod rules;
#[cfg(test)]
mod tests;
mod vocabulary;

pub use functions::{Function, check_policy};
pub use handler::check_handler;
pub use name::is_component_name;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Install refuses the component.
    Error,
    /// Told, not refused: hardly meant.
    Warning,
    /// Told: worth knowing.
    Note,
}

impl Severity {
    /// The word used in output.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// Something wrong or doubtful in a descriptor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How much it matters.
    pub severity: Severity,
    /// Where, as a path such as `edges[3].to`.
    pub place: String,
    /// What.
    pub message: String,
}

/// Limits on sizes, so that tables, drawings and look-ups stay bounded whatever a stranger ships.
mod limit {
    pub(super) const STATUSES: usize = 256;
    pub(super) const EDGES: usize = 4_096;
    pub(super) const REASON_CODES: usize = 1_024;
    pub(super) const FIELDS: usize = 256;
    pub(super) const TEXT_BYTES: usize = 4_096;
    pub(super) const NAME_CHARS: usize = 64;
    pub(super) const CHOICES: usize = 256;
    pub(super) const HISTORY_ROWS: i64 = 100;
    pub(super) const OUTPUT_BYTES: i64 = 65_536;
}

/// Extension keys this host knows; a critical one outside this list is an error.
const KNOWN_EXTENSIONS: [&str; 0] = [];

/// Every problem of a descriptor. It may be installed when none is an error.
pub fn check(descriptor: &Descriptor) -> Vec<Finding> {
    let mut findings = Findings::default();
    names(descriptor, &mut findings);
    if !sizes(descriptor, &mut findings) {
        // What follows compares rows with rows: it is for tables of bounded size.
        return findings.0;
    }
    statuses(descriptor, &mut findings);
    edges(descriptor, &mut findings);
    reachability(descriptor, &mut findings);
    vocabulary(descriptor, &mut findings);
    rules(descriptor, &mut findings);
    verdicts(descriptor, &mut findings);
    parameters("parameters", &descriptor.parameters, &mut findings);
    times(descriptor, &mut findings);
    migrations(descriptor, &mut findings);
    doubts(descriptor, &mut findings);
    extensions(descriptor, &mut findings);
    findings.0
}

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn error(&mut self, place: impl Into<String>, message: impl Into<String>) {
        self.0.push(Finding {
            severity: Severity::Error,
            place: place.into(),
            message: message.into(),
        });
    }

    fn warn(&mut self, place: impl Into<String>, message: impl Into<String>) {
        self.0.push(Finding {
            severity: Severity::Warning,
            place: place.into(),
            message: message.into(),
        });
    }

    fn note(&mut self, place: impl Into<String>, message: impl Into<String>) {
        self.0.push(Finding {
            severity: Severity::Note,
            place: place.into(),
            message: message.into(),
        });
    }

    /// A text that is no longer than any may be.
    fn text(&mut self, place: impl Into<String>, text: &str) {
        if text.len() > limit::TEXT_BYTES {
            let (found, most) = (text.len(), limit::TEXT_BYTES);
            self.error(place, format!("a text of {found} bytes, at most {most} are admitted"));
        }
    }

    /// Extensions that this host knows, or may ignore.
    fn extensions<'a>(&mut self, extensions: impl Iterator<Item = &'a Extension>) {
        for extension in extensions {
            if extension.critical && !KNOWN_EXTENSIONS.contains(&extension.key.as_str()) {
                let message = format!("critical extension `{}` is not known to this host", extension.key);
                self.error("ext", message);
            }
        }
    }

    fn duplicates<'a>(&mut self, place: &str, what: &str, names: impl Iterator<Item = &'a str>) {
        let mut seen = HashSet::new();
        for (index, name) in names.enumerate() {
            if !seen.insert(name) {
                self.error(
                    format!("{place}[{index}]"),
                    format!("{what} `{name}` is declared twice"),
                );
            }
        }
    }
}

/// Three lower-case dotted segments; `legacy.imported` is the one exception (SEMANTICS 1).
fn is_reason_code(code: &str) -> bool {
    let segments: Vec<&str> = code.split('.').collect();
    code == "legacy.imported" || (segments.len() == 3 && segments.iter().all(|segment| is_name(segment, "")))
}

/// `major.minor.patch`, digits without leading zeros, as semantic versioning wants the core of a version.
fn is_version(version: &str) -> bool {
    let core = version.split(['-', '+']).next().unwrap_or_default();
    let parts: Vec<&str> = core.split('.').collect();
    let number = |part: &&str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()) && (*part == "0" || !part.starts_with('0'))
    };
    let tail = &version[core.len()..];
    let tail_fits = tail.bytes().all(|b| b.is_ascii_alphanumeric() || b".-+".contains(&b));
    version.len() <= limit::NAME_CHARS && parts.len() == 3 && parts.iter().all(number) && tail_fits && tail.len() != 1
}

/// The words that people call a component by.
fn label(name: &str, version: &str, findings: &mut Findings) {
    if !is_component_name(name) {
        let message = format!("`{name}` is no name: lower case, digits, `_` and `-`");
        findings.error("name", message);
    }
    if !is_version(version) {
        let message = format!("`{version}` is no semantic version such as 1.0.0");
        findings.error("version", message);
    }
}

fn names(descriptor: &Descriptor, findings: &mut Findings) {
    if !is_name(&descriptor.kind, "") {
        findings.error(
            "kind",
            format!("`{}` is no kind: lower case, digits and underscores", descriptor.kind),
        );
    }
    if descriptor.kind == HANDLER_KIND {
        findings.error(
            "kind",
            "`handler` is what handlers are listed as: no entity is of that kind",
        );
    }
    label(&descriptor.name, &descriptor.version, findings);
    for (index, status) in descriptor.statuses.iter().enumerate() {
        if !is_name(&status.name, "") {
            findings.error(
                format!("statuses[{index}].name"),
                format!("`{}` is no status name", status.name),
            );
        }
    }
    for (index, field) in descriptor.fields.iter().enumerate() {
        if !is_name(&field.name, "") {
            findings.error(
                format!("fields[{index}].name"),
                format!("`{}` is no field name", field.name),
            );
        }
    }
    for (index, reason) in descriptor.reason_codes.iter().enumerate() {
        if !is_reason_code(&reason.code) {
            let message = format!("`{}` is no reason code: three lower-case dotted segments", reason.code);
            findings.error(format!("reason_codes[{index}]"), message);
        }
    }
    findings.duplicates(
        "statuses",
        "status",
        descriptor.statuses.iter().map(|s| s.name.as_str()),
    );
    findings.duplicates("fields", "field", descriptor.fields.iter().map(|f| f.name.as_str()));
    findings.duplicates(
        "reason_codes",
        "reason code",
        descriptor.reason_codes.iter().map(|r| r.code.as_str()),
    );
    let pairs: Vec<String> = descriptor
        .edges
        .iter()
        .map(|e| format!("{} -> {}", e.from, e.to))
        .collect();
    findings.duplicates("edges", "edge", pairs.iter().map(String::as_str));
}

/// Whether every list is within its limit.
fn sizes(descriptor: &Descriptor, findings: &mut Findings) -> bool {
    let mappings = descriptor.migrations.iter().map(|row| row.statuses.len()).sum();
    let counts = [
        ("statuses", descriptor.statuses.len(), limit::STATUSES),
        ("edges", descriptor.edges.len(), limit::EDGES),
        ("reason_codes", descriptor.reason_codes.len(), limit::REASON_CODES),
        ("fields", descriptor.fields.len(), limit::FIELDS),
        ("parameters", descriptor.parameters.len(), limit::FIELDS),
        ("verdicts", descriptor.verdicts.len(), limit::EDGES),
        ("kill", descriptor.kill.len(), limit::STATUSES),
        ("health", descriptor.health.len(), limit::STATUSES),
        ("migrations", descriptor.migrations.len(), limit::STATUSES),
        ("migrations.statuses", mappings, limit::EDGES),
    ];
    let mut all_fit = true;
    for (place, found, most) in counts {
        if found > most {
            findings.error(place, format!("{found} entries, at most {most} are admitted"));
            all_fit = false;
        }
    }
    let texts = std::iter::once(("summary".to_owned(), &descriptor.summary))
        .chain(
            descriptor
                .statuses
                .iter()
                .map(|s| (format!("statuses.{}", s.name), &s.summary)),
        )
        .chain(
            descriptor
                .fields
                .iter()
                .map(|f| (format!("fields.{}", f.name), &f.summary)),
        )
        .chain(
            descriptor
                .reason_codes
                .iter()
                .map(|r| (format!("reason_codes.{}", r.code), &r.summary)),
        );
    for (place, text) in texts {
        findings.text(place, text);
    }
    all_fit
}

fn statuses(descriptor: &Descriptor, findings: &mut Findings) {
    if !descriptor.statuses.iter().any(|status| status.initial) {
        findings.error("statuses", "no status is initial: nothing could be created");
    }
    if !descriptor.statuses.iter().any(|status| status.terminal) {
        findings.warn("statuses", "no status is terminal: nothing ever ends");
    }
    for (index, status) in descriptor.statuses.iter().enumerate() {
        let place = format!("statuses[{index}]");
        if status.success && !status.terminal {
            findings.error(&place, format!("`{}` is a success and not terminal", status.name));
        }
        if status.announced && status.terminal {
            findings.error(
                &place,
                format!("`{}` is announced and terminal: ends are events anyway", status.name),
            );
        }
        if status.creation_code.is_some() && !status.initial {
            findings.error(
                &place,
                format!("`{}` has a creation code and is not initial", status.name),
            );
        }
    }
}

fn edges(descriptor: &Descriptor, findings: &mut Findings) {
    let known: HashSet<&str> = descriptor.statuses.iter().map(|status| status.name.as_str()).collect();
    let fields: HashSet<&str> = descriptor.fields.iter().map(|field| field.name.as_str()).collect();
    let terminal: HashSet<&str> = descriptor
        .statuses
        .iter()
        .filter(|status| status.terminal)
        .map(|status| status.name.as_str())
        .collect();
    for (index, edge) in descriptor.edges.iter().enumerate() {
        let place = format!("edges[{index}]");
        for (end, name) in [("from", &edge.from), ("to", &edge.to)] {
            if !known.contains(name.as_str()) {
                findings.error(format!("{place}.{end}"), format!("status `{name}` is not declared"));
            }
        }
        for actor in &edge.actors {
            if !ACTOR_KINDS.contains(&actor.as_str()) {
                findings.error(format!("{place}.actors"), format!("`{actor}` is no actor kind"));
            }
        }
        let lists = [
            ("required_patch", &edge.required_patch),
            ("required_guards", &edge.required_guards),
        ];
        for (list, names) in lists {
            for name in names.iter().filter(|name| !fields.contains(name.as_str())) {
                findings.error(format!("{place}.{list}"), format!("field `{name}` is not declared"));
            }
        }
        let for_operators = edge.actors == ["operator"];
        if terminal.contains(edge.from.as_str()) && edge.from != edge.to && !for_operators {
            let message = format!(
                "leads out of terminal `{}`: only an edge for operators alone may",
                edge.from
            );
            findings.error(&place, message);
        }
    }
}

fn reachability(descriptor: &Descriptor, findings: &mut Findings) {
    let initial = descriptor
        .statuses
        .iter()
        .filter(|s| s.initial)
        .map(|s| s.name.as_str());
    let reached = closure(initial, &descriptor.edges, |edge| {
        (edge.from.as_str(), edge.to.as_str())
    });
    let terminal = descriptor
        .statuses
        .iter()
        .filter(|s| s.terminal)
        .map(|s| s.name.as_str());
    let can_end = closure(terminal, &descriptor.edges, |edge| {
        (edge.to.as_str(), edge.from.as_str())
    });
    for (index, status) in descriptor.statuses.iter().enumerate() {
        let place = format!("statuses[{index}]");
        if !reached.contains(status.name.as_str()) {
            findings.error(
                &place,
                format!("`{}` cannot be reached from an initial status", status.name),
            );
        }
        if !status.terminal && !can_end.contains(status.name.as_str()) {
            findings.warn(&place, format!("`{}` has no way to a terminal status", status.name));
        }
    }
}

/// Everything reached from `start` along edges read as (here, there).
fn closure<'a>(
    start: impl Iterator<Item = &'a str>,
    edges: &'a [Edge],
    read: impl Fn(&'a Edge) -> (&'a str, &'a str),
) -> HashSet<&'a str> {
    let mut queue: VecDeque<&str> = start.collect();
    let mut seen: HashSet<&str> = queue.iter().copied().collect();
    while let Some(here) = queue.pop_front() {
        for (from, to) in edges.iter().map(&read) {
            if from == here && seen.insert(to) {
                queue.push_back(to);
            }
        }
    }
    seen
}

/// What entities are carried over to exists, and no status of another version goes to two.
fn migrations(descriptor: &Descriptor, findings: &mut Findings) {
    for (index, row) in descriptor.migrations.iter().enumerate() {
        let place = format!("migrations[{index}]");
        if !row.from_name.is_empty() && !is_component_name(&row.from_name) {
            findings.error(
                format!("{place}.from_name"),
                format!("`{}` is no name of a policy", row.from_name),
            );
        }
        if row.from_version.is_empty() || row.from_version.len() > limit::NAME_CHARS {
            findings.error(
                format!("{place}.from_version"),
                "a version or its beginning, such as 1 or 1.2.0",
            );
        }
        for mapping in &row.statuses {
            status_declared(descriptor, &format!("{place}.statuses"), &mapping.to, findings);
        }
        let left = row.statuses.iter().map(|mapping| mapping.from.as_str());
        findings.duplicates(&format!("{place}.statuses"), "status", left);
    }
}

fn extensions(descriptor: &Descriptor, findings: &mut Findings) {
    let edges = descriptor.edges.iter().map(|e| &e.ext);
    let places = std::iter::once(&descriptor.ext)
        .chain(std::iter::once(&descriptor.reads.ext))
        .chain(edges)
        .chain(descriptor.statuses.iter().map(|s| &s.ext))
        .chain(descriptor.fields.iter().map(|f| &f.ext))
        .chain(descriptor.verdicts.iter().map(|v| &v.ext))
        .chain(descriptor.kill.iter().map(|k| &k.ext))
        .chain(descriptor.parameters.iter().map(|p| &p.ext))
        .chain(descriptor.execution.iter().map(|r| &r.ext))
        .chain(descriptor.lease.iter().map(|r| &r.ext))
        .chain(descriptor.delivery.iter().map(|r| &r.ext))
        .chain(descriptor.retry.iter().map(|r| &r.ext))
        .chain(descriptor.migrations.iter().map(|m| &m.ext));
    findings.extensions(places.flatten());
}
