//! Changes that nobody approves alone: whoever proposed one, or wrote to it, agrees to nothing in it.
//!
//! Who did what is in the history; how many have to agree is a parameter. What would get around the guard is closed: the
//! proposal cannot be written to while it is signed, and no edge is missing that an override could cross unasked.

use runwarden_kit::table::{codes, edge, field, kill, parameter, policy, status};
use runwarden_kit::{Actor, Decision, Descriptor, Edge, Fault, Guard, HistoryRow, Policy, Request, Surroundings};

/// The policy of the kind `change`.
#[derive(Debug)]
pub struct Change;

/// How many of the newest history rows are looked at: as many as a policy may ask for.
const HISTORY: i64 = 100;

impl Policy for Change {
    fn describe() -> Descriptor {
        policy("change", "1.0.0", "A change that somebody else has to agree to.")
            .statuses([
                status("proposed", "Waits for somebody else to agree.").initial("change.proposed.ok"),
                status("signed", "Somebody agreed; more have to.").announced(),
                status("approved", "May be carried out.").announced(),
                status("applied", "Was carried out.").success(),
                status("rejected", "Was turned down.").terminal(),
                status("withdrawn", "Was taken back.").terminal(),
            ])
            .edges(edges())
            .fields([
                field("title", "text", "What is to change."),
                field("revision", "text", "Exactly what is agreed to: a commit, a digest."),
                field("note", "text", "What whoever turned it down had to say."),
            ])
            .codes(codes(&[
                ("change.proposed.ok", "Was proposed."),
                (
                    "change.proposed.revised",
                    "Was changed: whoever agreed has to look again.",
                ),
                ("change.signed.ok", "Somebody agreed."),
                ("change.approved.ok", "Enough people agreed."),
                ("change.applied.ok", "Was carried out."),
                ("change.rejected.ok", "Was turned down."),
                ("change.withdrawn.ok", "Was taken back."),
                (
                    "change.withdrawn.forced",
                    "Was taken back, and what carried it out was stopped by force.",
                ),
                (
                    "change.withdrawn.stale",
                    "Was taken back: what carried it out was gone.",
                ),
            ]))
            .rejecting_same_status()
            .emitting_events()
            .kill(kill(
                &["proposed", "signed", "approved"],
                "withdrawn",
                "change.withdrawn.ok",
                "change.withdrawn.forced",
                "change.withdrawn.stale",
            ))
            .parameters([parameter(
                "quorum",
                "integer",
                "1",
                "How many people have to agree beside whoever proposed it.",
            )])
            .reading_history(HISTORY)
    }
}

fn edges() -> Vec<Edge> {
    let people = &["operator", "admin"];
    let asked = |from, to| edge(from, to).only(people).guarded();
    vec![
        asked("proposed", "signed"),
        asked("signed", "signed"),
        asked("proposed", "approved"),
        asked("signed", "approved"),
        // Written anew, it is another proposal; nothing that was agreed to holds any more.
        edge("proposed", "proposed").patching(&["revision"]),
        edge("signed", "proposed").patching(&["revision"]),
        edge("approved", "proposed").patching(&["revision"]),
        edge("approved", "applied").guarding(&["revision"]),
        // Never to be: declared, so that an override is asked about them too.
        asked("proposed", "applied"),
        asked("signed", "applied"),
        edge("proposed", "rejected").only(people).patching(&["note"]),
        edge("signed", "rejected").only(people).patching(&["note"]),
        edge("proposed", "withdrawn"),
        edge("signed", "withdrawn"),
        edge("approved", "withdrawn"),
    ]
}

impl Guard for Change {
    fn evaluate(request: Request) -> Result<Decision, Fault> {
        let seen = &request.surroundings;
        if request.target == "applied" {
            let words = "nobody has approved this: it is approved first, then applied";
            return Ok(Decision::refuse("not_approved", words));
        }
        let Some(authors) = authors(&seen.history) else {
            let words = "it was written to so often that its author is out of sight: propose it anew";
            return Ok(Decision::refuse("author_unknown", words));
        };
        let actor = &request.actor;
        if authors.contains(&actor.id.as_str()) {
            let words = format!("{} wrote this proposal: somebody else has to agree to it", actor.id);
            return Ok(Decision::refuse("same_person", &words));
        }
        let signers = signers(&seen.history);
        if request.target == "signed" {
            return Ok(if signers.contains(&actor.id.as_str()) {
                let words = format!("{} has agreed before: each person counts once", actor.id);
                Decision::refuse("signed_before", &words)
            } else {
                Decision::admit()
            });
        }
        let quorum = quorum(seen)?;
        let agreed = signers.iter().filter(|signer| **signer != actor.id).count() + 1;
        Ok(if agreed >= quorum {
            Decision::admit()
        } else {
            Decision::refuse("too_few", &too_few(actor, agreed, quorum))
        })
    }
}

fn too_few(actor: &Actor, agreed: usize, quorum: usize) -> String {
    format!(
        "with {} it is {agreed} of {quorum} who have to agree: sign it (status signed), and let the last one approve",
        actor.id
    )
}

/// Everybody who wrote the proposal; none when its beginning is out of sight.
fn authors(history: &[HistoryRow]) -> Option<Vec<&str>> {
    history.iter().find(|row| row.previous_status.is_none())?;
    let proposed = history.iter().filter(|row| row.status == "proposed");
    Some(proposed.map(|row| row.actor.id.as_str()).collect())
}

/// Who agreed to the proposal as it stands, each once: what was agreed to before it was written anew does not count.
fn signers(history: &[HistoryRow]) -> Vec<&str> {
    let since = history.iter().take_while(|row| row.status != "proposed");
    let mut names: Vec<&str> = since
        .filter(|row| row.status == "signed")
        .map(|row| row.actor.id.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn quorum(seen: &Surroundings) -> Result<usize, Fault> {
    let set = seen.parameter("quorum").unwrap_or_default();
    set.parse().map_err(|_| {
        Fault::new("bad_quorum", &format!("the quorum is `{set}`")).hint("activate it with --set quorum=2")
    })
}

runwarden_kit::export!(Change: policy, guard);

#[cfg(test)]
mod tests;
