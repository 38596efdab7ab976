//! The lifecycle of a set of plays.

use runwarden_kit::table::{codes, edges, field, policy, status};
use runwarden_kit::{Descriptor, Policy};
use runwarden_policy_shared::codes as shared_codes;
use runwarden_policy_shared::process;

/// The policy of the kind `show`.
#[derive(Debug)]
pub struct Show;

impl Policy for Show {
    fn describe() -> Descriptor {
        policy("show", "1.0.0", "A set of plays.")
            .statuses([
                status("active", "Its plays are under way.").initial("show.active.created"),
                status("imported", "Taken over from elsewhere.").initial("show.imported.created"),
                status("completed", "All that was wanted is done.").success(),
                status("aborted", "Given up or killed.").terminal(),
            ])
            .edges(edges("active", &["imported", "completed", "aborted"]))
            .edges(edges("imported", &["active", "completed", "aborted"]))
            .fields([field("status_source", "text", "Who or what set the status.")])
            .codes(codes(&[
                ("show.active.created", "Was created."),
                ("show.imported.created", "Was taken over from elsewhere."),
                ("show.blocked.no_ready_plays", "None of its plays can go on."),
                ("show.completed.all_plays_merged", "All its plays were taken over."),
                ("show.completed.final_gate", "Its last gate was passed."),
                ("show.aborted.operator", "Given up by an operator."),
            ]))
            .codes(shared_codes::of_kills())
            .kill(process::kill_from(&["active", "imported"], "aborted"))
    }
}

runwarden_kit::export!(Show: policy);

#[cfg(test)]
mod tests {
    use super::Show;
    use runwarden_kit::Policy;
    use runwarden_kit::check::{problems, targets};

    #[test]
    fn the_table_is_sound() {
        assert_eq!(problems(&Show::describe()), [""; 0]);
    }

    #[test]
    fn both_open_statuses_lead_to_every_other() {
        let check = |from, expected: [&str; 3]| assert_eq!(targets(&Show::describe(), from), expected);
        check("active", ["imported", "completed", "aborted"]);
        check("imported", ["active", "completed", "aborted"]);
    }
}
