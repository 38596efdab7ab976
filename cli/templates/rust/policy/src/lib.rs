//! What the statuses of a {{kind}} mean.

use runwarden_kit::table::{codes, edge, field, policy, status};
use runwarden_kit::{Decision, Descriptor, Fault, Guard, Policy, Request};

/// The policy of the kind `{{kind}}`.
#[derive(Debug)]
pub struct {{type}}Policy;

impl Policy for {{type}}Policy {
    fn describe() -> Descriptor {
        policy("{{kind}}", "1.0.0", "A {{kind}}.")
            .named("{{name}}")
            .statuses([
                status("open", "Is being worked on.").initial("{{kind}}.open.created"),
                status("review", "Waits for somebody to look at it.").announced(),
                status("done", "Is as it should be.").success(),
                status("dropped", "Is not wanted any more.").terminal(),
            ])
            .edges([
                edge("open", "review"),
                edge("review", "open"),
                // What data cannot say, the guard below does.
                edge("review", "done").patching(&["reviewer"]).guarded(),
                edge("open", "dropped"),
                edge("review", "dropped"),
            ])
            .fields([
                field("author", "text", "Who did the work."),
                field("reviewer", "text", "Who looked at it."),
            ])
            .codes(codes(&[
                ("{{kind}}.open.created", "Was begun."),
                ("{{kind}}.open.again", "More is to be done."),
                ("{{kind}}.review.asked", "Somebody is to look at it."),
                ("{{kind}}.done.ok", "Was found good."),
                ("{{kind}}.dropped.operator", "Was given up."),
            ]))
            .emitting_events()
    }
}

/// Asked on edges marked `guarded` alone. It may refuse what the table allows, never allow what the table forbids.
impl Guard for {{type}}Policy {
    fn evaluate(request: Request) -> Result<Decision, Fault> {
        let reviewer = request.patch.iter().find(|entry| entry.name == "reviewer");
        let reviewer = reviewer.map(|entry| entry.json.as_str());
        if reviewer.is_some() && reviewer == request.entity.field("author") {
            let why = "nobody looks at their own work";
            return Ok(Decision::refuse("same_person", why));
        }
        Ok(Decision::admit())
    }
}

runwarden_kit::export!({{type}}Policy: policy, guard);

#[cfg(test)]
mod tests {
    use super::{{type}}Policy;
    use runwarden_kit::Policy;
    use runwarden_kit::check::{problems, targets};

    #[test]
    fn the_table_is_sound() {
        assert_eq!(problems(&{{type}}Policy::describe()), [""; 0]);
    }

    #[test]
    fn what_is_done_stays_done() {
        assert_eq!(targets(&{{type}}Policy::describe(), "done"), [""; 0]);
    }
}
