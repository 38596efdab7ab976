//! Checks for an author's own tests. The host makes the same checks, and more, when the component is installed.

use std::collections::BTreeSet;

use crate::{Descriptor, Edge, Outcome, Status};

/// The edges between two statuses; several only when they differ in whom they admit.
pub fn edges_between<'a>(table: &'a Descriptor, from: &str, to: &str) -> Vec<&'a Edge> {
    let matches = |edge: &&Edge| edge.from == from && edge.to == to;
    table.edges.iter().filter(matches).collect()
}

/// The edge between two statuses, if there is one.
pub fn edge_between<'a>(table: &'a Descriptor, from: &str, to: &str) -> Option<&'a Edge> {
    edges_between(table, from, to).into_iter().next()
}

/// The statuses that one edge leads to, in the order of the table.
pub fn targets<'a>(table: &'a Descriptor, from: &str) -> Vec<&'a str> {
    let leaving = table.edges.iter().filter(|edge| edge.from == from);
    leaving.map(|edge| edge.to.as_str()).collect()
}

/// Names of the statuses that a test admits, in the order of the table.
pub fn names(table: &Descriptor, admits: impl Fn(&Status) -> bool) -> Vec<&str> {
    let chosen = table.statuses.iter().filter(|status| admits(status));
    chosen.map(|status| status.name.as_str()).collect()
}

/// Everything that is wrong with a table, each problem with its place; empty when it is sound.
pub fn problems(table: &Descriptor) -> Vec<String> {
    let mut problems = Vec::new();
    duplicates(table, &mut problems);
    graph(table, &mut problems);
    requirements(table, &mut problems);
    code_shapes(table, &mut problems);
    outcomes(table, &mut problems);
    rule_edges(table, &mut problems);
    problems
}

fn duplicates(table: &Descriptor, problems: &mut Vec<String>) {
    let statuses = table.statuses.iter().map(|status| status.name.clone());
    let fields = table.fields.iter().map(|field| field.name.clone());
    let codes = table.reason_codes.iter().map(|code| code.code.clone());
    let edges = table
        .edges
        .iter()
        .map(|edge| format!("{} -> {} {:?}", edge.from, edge.to, edge.actors));
    twice("status", statuses, problems);
    twice("field", fields, problems);
    twice("reason code", codes, problems);
    twice("edge", edges, problems);
}

fn twice(what: &str, names: impl Iterator<Item = String>, problems: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for name in names {
        if seen.contains(&name) {
            problems.push(format!("{what} `{name}` is declared twice"));
        }
        seen.insert(name);
    }
}

fn graph(table: &Descriptor, problems: &mut Vec<String>) {
    for edge in &table.edges {
        for end in [&edge.from, &edge.to] {
            if find(table, end).is_none() {
                problems.push(format!(
                    "edge {} -> {} names the unknown status `{end}`",
                    edge.from, edge.to
                ));
            }
        }
        let ends = find(table, &edge.from).is_some_and(|status| status.terminal);
        if ends && edge.from != edge.to && edge.actors != ["operator"] {
            problems.push(format!(
                "edge {} -> {} leaves a terminal status and is not for operators alone",
                edge.from, edge.to
            ));
        }
    }
    if !table.statuses.iter().any(|status| status.initial) {
        problems.push("no status is initial".to_owned());
    }
    for status in unreachable(table) {
        problems.push(format!("status `{status}` cannot be reached"));
    }
    for status in endless(table) {
        problems.push(format!("status `{status}` can never end"));
    }
}

/// Statuses that no path from an initial status reaches.
pub fn unreachable(table: &Descriptor) -> Vec<&str> {
    let initial = names(table, |status| status.initial);
    let reached = spread(initial, |name| targets(table, name));
    names(table, |status| !reached.contains(status.name.as_str()))
}

/// Statuses from which no path leads to a terminal status.
pub fn endless(table: &Descriptor) -> Vec<&str> {
    let terminal = names(table, |status| status.terminal);
    let ending = spread(terminal, |name| {
        let entering = table.edges.iter().filter(|edge| edge.to == name);
        entering.map(|edge| edge.from.as_str()).collect()
    });
    names(table, |status| !ending.contains(status.name.as_str()))
}

fn spread<'a>(start: Vec<&'a str>, next: impl Fn(&str) -> Vec<&'a str>) -> BTreeSet<&'a str> {
    let mut reached: BTreeSet<&str> = start.iter().copied().collect();
    let mut open = start;
    while let Some(name) = open.pop() {
        open.extend(next(name).into_iter().filter(|name| reached.insert(name)));
    }
    reached
}

fn requirements(table: &Descriptor, problems: &mut Vec<String>) {
    for edge in &table.edges {
        for name in edge.required_patch.iter().chain(&edge.required_guards) {
            if !table.fields.iter().any(|field| field.name == *name) {
                problems.push(format!(
                    "edge {} -> {} requires the unknown field `{name}`",
                    edge.from, edge.to
                ));
            }
        }
    }
}

fn code_shapes(table: &Descriptor, problems: &mut Vec<String>) {
    let admitted = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    for row in &table.reason_codes {
        let segments: Vec<&str> = row.code.split('.').collect();
        let shaped = segments.len() == 3
            && segments
                .iter()
                .all(|segment| !segment.is_empty() && segment.bytes().all(admitted));
        if !shaped && row.code != "legacy.imported" {
            problems.push(format!(
                "reason code `{}` is not three lower-case dotted segments",
                row.code
            ));
        }
    }
}

fn outcomes(table: &Descriptor, problems: &mut Vec<String>) {
    for status in &table.statuses {
        if let Some(code) = &status.creation_code {
            declared_code(table, &format!("status `{}`", status.name), code, problems);
        }
    }
    for (place, outcome) in named_outcomes(table) {
        declared_status(table, &place, &outcome.status, problems);
        declared_code(table, &place, &outcome.code, problems);
    }
    for row in &table.kill {
        declared_status(table, "kill", &row.goes_to, problems);
        for status in &row.killable {
            declared_status(table, "kill", status, problems);
        }
        for code in [&row.term_code, &row.force_code, &row.stale_code] {
            declared_code(table, "kill", code, problems);
        }
    }
}

fn declared_status(table: &Descriptor, place: &str, name: &str, problems: &mut Vec<String>) {
    if find(table, name).is_none() {
        problems.push(format!("{place} names the unknown status `{name}`"));
    }
}

fn declared_code(table: &Descriptor, place: &str, code: &str, problems: &mut Vec<String>) {
    if !table.reason_codes.iter().any(|row| row.code == code) {
        problems.push(format!("{place} names the undeclared code `{code}`"));
    }
}

/// Every outcome that a rule writes, with its place.
fn named_outcomes(table: &Descriptor) -> Vec<(String, &Outcome)> {
    let mut found = Vec::new();
    for row in &table.verdicts {
        found.push(("verdict".to_owned(), &row.outcome));
    }
    if let Some(rule) = &table.execution {
        found.push(("execution start".to_owned(), &rule.start));
    }
    for (place, outcome) in execution_ends(table) {
        found.push((format!("execution {place}"), outcome));
    }
    if let Some(rule) = &table.lease {
        let steps = [
            ("lease claimed", Some(&rule.claimed)),
            ("lease lapsed", Some(&rule.lapsed)),
            ("lease recovered", rule.recovered.as_ref()),
            ("lease fenced", rule.fenced.as_ref()),
            ("lease exhausted", Some(&rule.exhausted)),
            ("lease backed-off", rule.backed_off.as_ref()),
            ("lease retry-due", rule.retry_due.as_ref()),
            ("lease handed-back", rule.handed_back.as_ref()),
            ("lease dependency-waiting", rule.dependency_waiting.as_ref()),
            ("lease dependency-met", rule.dependency_met.as_ref()),
            ("lease dependency-failed", rule.dependency_failed.as_ref()),
        ];
        let taken = steps
            .into_iter()
            .filter_map(|(place, step)| Some((place.to_owned(), step?)));
        found.extend(taken);
    }
    if let Some(rule) = &table.delivery {
        let steps = [
            ("delivery enqueued", &rule.enqueued),
            ("delivery claimed", &rule.claimed),
            ("delivery delivered", &rule.delivered),
            ("delivery awaiting-acknowledgement", &rule.awaiting_acknowledgement),
            ("delivery acknowledged", &rule.acknowledged),
            ("delivery acknowledgement-missed", &rule.acknowledgement_missed),
            ("delivery backed-off", &rule.backed_off),
            ("delivery exhausted", &rule.exhausted),
            ("delivery refused", &rule.refused),
            ("delivery expired", &rule.expired),
            ("delivery revived", &rule.revived),
        ];
        found.extend(steps.map(|(place, step)| (place.to_owned(), step)));
    }
    found
}

fn execution_ends(table: &Descriptor) -> Vec<(&'static str, &Outcome)> {
    let Some(rule) = &table.execution else {
        return Vec::new();
    };
    vec![
        ("spawn-failed", &rule.spawn_failed),
        ("directory-missing", &rule.directory_missing),
        ("identity-lost", &rule.identity_lost),
        ("timed-out", &rule.timed_out),
        ("hung-up", &rule.hung_up),
        ("interrupted", &rule.interrupted),
        ("terminated", &rule.terminated),
        ("parent-gone", &rule.parent_gone),
        ("host-restarted", &rule.host_restarted),
        ("ended-unobserved", &rule.ended_unobserved),
        ("verdict-failed", &rule.verdict_failed),
    ]
}

/// Rules need edges that nothing can hold up. Only the recovery of a lease may require a guard.
fn rule_edges(table: &Descriptor, problems: &mut Vec<String>) {
    if let Some(rule) = &table.execution {
        for (place, outcome) in execution_ends(table) {
            plain(table, place, &rule.start.status, &outcome.status, problems);
        }
        for row in &table.verdicts {
            let to = &row.outcome.status;
            plain(table, "verdict", &rule.start.status, to, problems);
        }
    }
    for row in &table.kill {
        for from in &row.killable {
            plain(table, "kill", from, &row.goes_to, problems);
        }
    }
    if table.lease.is_some() {
        lease_edges(table, problems);
    }
}

fn lease_edges(table: &Descriptor, problems: &mut Vec<String>) {
    let Some(rule) = &table.lease else {
        return;
    };
    let running = &rule.claimed.status;
    let lapsed = &rule.lapsed.status;
    plain(table, "claimed", &rule.queued, running, problems);
    plain(table, "lapsed", running, lapsed, problems);
    let last = if rule.fenced.is_some() { lapsed } else { running };
    plain(table, "exhausted", last, &rule.exhausted.status, problems);
    let waiting = rule.dependency_waiting.as_ref();
    let retry = rule.backed_off.as_ref().or(rule.handed_back.as_ref());
    let steps = [
        ("fenced", Some(lapsed), &rule.fenced),
        ("backed-off", Some(running), &rule.backed_off),
        ("handed-back", Some(running), &rule.handed_back),
        ("retry-due", retry.map(|step| &step.status), &rule.retry_due),
        ("dependency-waiting", Some(&rule.queued), &rule.dependency_waiting),
        ("dependency-met", waiting.map(|step| &step.status), &rule.dependency_met),
        (
            "dependency-failed",
            waiting.map(|step| &step.status),
            &rule.dependency_failed,
        ),
    ];
    for (place, from, step) in steps {
        if let (Some(from), Some(step)) = (from, step) {
            plain(table, place, from, &step.status, problems);
        }
    }
    if let Some(step) = &rule.recovered
        && edge_between(table, lapsed, &step.status).is_none()
    {
        problems.push(format!("recovered needs {lapsed} -> {}", step.status));
    }
}

fn plain(table: &Descriptor, place: &str, from: &str, to: &str, problems: &mut Vec<String>) {
    let unhindered = |edge: &&Edge| {
        edge.actors.is_empty() && edge.required_patch.is_empty() && edge.required_guards.is_empty() && !edge.guarded
    };
    if !edges_between(table, from, to).iter().any(unhindered) {
        problems.push(format!("{place} needs an unhindered edge {from} -> {to}"));
    }
}

fn find<'a>(table: &'a Descriptor, name: &str) -> Option<&'a Status> {
    table.statuses.iter().find(|status| status.name == name)
}

#[cfg(test)]
mod tests {
    use super::problems;
    use crate::table::{code, edge, edges, kill, policy, status};

    #[test]
    fn every_problem_is_reported_at_once_with_its_place() {
        let table = policy("build", "1.0.0", "")
            .statuses([
                status("running", "").initial("build.started.ok"),
                status("stuck", ""),
                status("done", "").success(),
                status("done", "").success(),
                status("lost", "").terminal(),
            ])
            .edges(edges("running", &["stuck", "done", "nowhere"]))
            .edges([edge("done", "running").patching(&["again"])])
            .kill(kill(&["stuck"], "lost", "a.b.c", "a.b.c", "a.b.c"))
            .codes([code("a.b.c", ""), code("bad", "")]);
        assert_eq!(
            problems(&table),
            [
                "status `done` is declared twice",
                "edge running -> nowhere names the unknown status `nowhere`",
                "edge done -> running leaves a terminal status and is not for operators alone",
                "status `lost` cannot be reached",
                "status `stuck` can never end",
                "edge done -> running requires the unknown field `again`",
                "reason code `bad` is not three lower-case dotted segments",
                "status `running` names the undeclared code `build.started.ok`",
                "kill needs an unhindered edge stuck -> lost",
            ]
        );
    }
}
