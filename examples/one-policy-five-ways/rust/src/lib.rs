//! What the statuses of a ticket mean.

use runwarden_kit::table::{codes, edge, edges, field, policy, status};
use runwarden_kit::{Decision, Descriptor, Fault, Guard, Policy, Request};

/// The policy of tickets.
#[derive(Debug)]
pub struct Ticket;

impl Policy for Ticket {
    fn describe() -> Descriptor {
        policy("ticket", "1.0.0", "A ticket that people and agents work on.")
            .statuses([
                status("open", "Nobody works on it.").initial("ticket.open.created"),
                status("working", "Somebody works on it."),
                status("solved", "An operator saw that it is solved.").success(),
                status("declined", "Nothing is done about it.").terminal(),
            ])
            .edges(edges("open", &["working", "declined"]))
            .edges(edges("working", &["open", "declined"]))
            .edges([edge("working", "solved").patching(&["resolution"]).guarded()])
            .fields([field("resolution", "text", "What was done.")])
            .codes(codes(&[
                ("ticket.open.created", "Was written."),
                ("ticket.open.returned", "Was given back."),
                ("ticket.working.taken", "Was taken up."),
                ("ticket.solved.ok", "Is solved."),
                ("ticket.declined.operator", "Is not worth it."),
            ]))
            .emitting_events()
    }
}

impl Guard for Ticket {
    fn evaluate(request: Request) -> Result<Decision, Fault> {
        Ok(match request.actor.kind.as_str() {
            "operator" | "admin" => Decision::admit(),
            _ => Decision::refuse("not_a_person", "a person sees that a ticket is solved"),
        })
    }
}

runwarden_kit::export!(Ticket: policy, guard);

#[cfg(test)]
mod tests {
    use runwarden_kit::{Guard, sample};

    use super::Ticket;

    #[test]
    fn a_person_solves_a_ticket_and_no_agent_does() {
        let admitted = |actor| Ticket::evaluate(sample::request("working", "solved", actor)).map(|said| said.admitted);
        assert!(matches!(admitted("operator:ann"), Ok(true)));
        assert!(matches!(admitted("agent:helper"), Ok(false)));
    }
}
