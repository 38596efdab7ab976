//! What is sound and yet hardly meant: nothing here keeps a component from being installed.

use super::Findings;
use crate::model::{Descriptor, Edge, Evidence, Status, VerdictRow};

/// Everything doubtful in the table itself.
pub(super) fn doubts(descriptor: &Descriptor, findings: &mut Findings) {
    successes(descriptor, findings);
    killing(descriptor, findings);
    operators(descriptor, findings);
    rows(&descriptor.verdicts, findings);
    own_version(descriptor, findings);
}

fn successes(descriptor: &Descriptor, findings: &mut Findings) {
    let ends = descriptor.statuses.iter().any(|status| status.terminal);
    if ends && !descriptor.statuses.iter().any(|status| status.success) {
        let message = "no status is a success: whoever waits for one of this kind is always told that it failed";
        findings.warn("statuses", message);
    }
}

/// A kind that can be killed can be killed wherever it stands.
fn killing(descriptor: &Descriptor, findings: &mut Findings) {
    if descriptor.kill.is_empty() {
        if descriptor.execution.is_some() {
            findings.warn("kill", "what is run cannot be killed: there is no row");
        }
        return;
    }
    let is_killable = |status: &Status| descriptor.kill.iter().any(|row| row.killable.contains(&status.name));
    for (index, status) in descriptor.statuses.iter().enumerate() {
        if !status.terminal && !is_killable(status) {
            let message = format!("`{}` is in no row of `kill`: nothing can be killed there", status.name);
            findings.warn(format!("statuses[{index}]"), message);
        }
    }
}

/// Where operators alone lead on: from a live status somebody must come, from an ended one somebody may.
fn operators(descriptor: &Descriptor, findings: &mut Findings) {
    for (index, status) in descriptor.statuses.iter().enumerate() {
        let place = format!("statuses[{index}]");
        let leaves = |edge: &&Edge| edge.from == status.name && edge.to != status.name;
        let ways: Vec<&Edge> = descriptor.edges.iter().filter(leaves).collect();
        let by_operators = !ways.is_empty() && ways.iter().all(|edge| edge.actors == ["operator"]);
        if by_operators && status.terminal {
            let targets: Vec<&str> = ways.iter().map(|edge| edge.to.as_str()).collect();
            let message = format!(
                "`{}` is an end that an operator can leave, to {}",
                status.name,
                targets.join(", ")
            );
            findings.note(place, message);
        } else if by_operators {
            let message = format!(
                "`{}` can be left by operators alone: the work waits for one there",
                status.name
            );
            findings.warn(place, message);
        }
    }
}

/// Rows of which an earlier one takes every ending.
fn rows(rows: &[VerdictRow], findings: &mut Findings) {
    for (index, row) in rows.iter().enumerate() {
        if let Some(earlier) = rows[..index].iter().position(|earlier| covers(earlier, row)) {
            let message = format!("is never reached: verdicts[{earlier}] takes all of it before");
            findings.warn(format!("verdicts[{index}]"), message);
        }
    }
}

/// Causes of ends that the host led to: for those only rows that name them are looked at.
const STOPS: [&str; 4] = ["timeout", "kill", "hangup", "host_restarted"];

/// Whether every ending that reaches both rows is taken by the earlier one.
fn covers(earlier: &VerdictRow, row: &VerdictRow) -> bool {
    let codes = match (earlier.exit_codes, row.exit_codes) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some((first, last)), Some((row_first, row_last))) => first <= row_first && row_last <= last,
    };
    let signals = match (&earlier.signals, &row.signals) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(any), Some(_)) if any.is_empty() => true,
        (Some(known), Some(of_row)) => !of_row.is_empty() && of_row.iter().all(|signal| known.contains(signal)),
    };
    let causes = match (earlier.causes.is_empty(), row.causes.is_empty()) {
        (true, true) => true,
        (true, false) => !row.causes.iter().any(|cause| STOPS.contains(&cause.as_str())),
        (false, true) => false,
        (false, false) => row.causes.iter().all(|cause| earlier.causes.contains(cause)),
    };
    let evidence = earlier.evidence.is_none() || earlier.evidence == row.evidence;
    codes && signals && causes && evidence && is_possible(row)
}

/// What no ending has is told as an error, and not as a row that another one covers.
fn is_possible(row: &VerdictRow) -> bool {
    let evidence = row.evidence.as_deref();
    (row.exit_codes.is_none() || row.signals.is_none())
        && evidence.is_none_or(|word| Evidence::from_word(word).is_some())
}

/// Entities of this very version need not be carried over to it.
fn own_version(descriptor: &Descriptor, findings: &mut Findings) {
    for (index, row) in descriptor.migrations.iter().enumerate() {
        let is_own = row.from_name.is_empty() || row.from_name == descriptor.name;
        if is_own && row.from_version == descriptor.version {
            let message = format!(
                "`{}` is this version: nothing is carried over from it",
                row.from_version
            );
            findings.warn(format!("migrations[{index}].from_version"), message);
        }
    }
}
