//! The lifecycle of one delivery: claimed, sent, tried again, given up, and revived by an operator alone.

use runwarden_kit::table::{codes, edge, edges, field, outcome, policy, retry, status};
use runwarden_kit::{DeliveryRule, Descriptor, Edge, Policy};

/// The policy of the kind `dispatch`.
#[derive(Debug)]
pub struct Dispatch;

const RETRY_BASE_MS: i64 = 30_000;
const RETRY_CAP_MS: i64 = 1_800_000;
const ATTEMPTS: i64 = 8;
const JITTER_PERCENT: i64 = 10;

impl Policy for Dispatch {
    fn describe() -> Descriptor {
        policy("dispatch", "1.0.0", "One delivery to one destination.")
            .statuses([
                status("pending", "Waits until it is due.").initial("dispatch.pending.enqueued"),
                status("delivering", "Claimed; an attempt is under way."),
                status("delivered", "The transport took it.").success(),
                status("acked", "The receiver acknowledged it.").success(),
                status("dead_letter", "Given up.").terminal(),
                status("expired", "Its deadline passed before it was claimed.").terminal(),
            ])
            .edges(edges("pending", &["delivering", "expired", "acked"]))
            .edges(edges(
                "delivering",
                &["pending", "delivered", "acked", "dead_letter", "expired"],
            ))
            // A crash left it claimed: only who names the attempt he saw may take it over.
            .edges([edge("delivering", "delivering").guarding(&["attempt"])])
            .edges([revival("dead_letter"), revival("expired")])
            .fields([
                field("attempt", "integer", "Attempts made."),
                field("next_attempt_at", "timestamp", "When it is due."),
                field("last_error", "text", "Why the last attempt failed."),
            ])
            .codes(codes(&[
                ("dispatch.pending.enqueued", "Was enqueued."),
                (
                    "dispatch.pending.retry_backoff",
                    "Failed, and will be tried again later.",
                ),
                ("dispatch.delivering.attempt", "An attempt is under way."),
                ("dispatch.delivered.transport_ok", "The transport took it."),
                ("dispatch.acked.consumer", "The receiver acknowledged it."),
                ("dispatch.dead_letter.max_attempts", "No attempts are left."),
                (
                    "dispatch.dead_letter.ack_timeout",
                    "Never acknowledged, and no attempts are left.",
                ),
                ("dispatch.dead_letter.refused", "Refused for good."),
                ("dispatch.expired.deadline", "Its deadline passed."),
            ]))
            .delivery(delivery())
            .retry(retry(RETRY_BASE_MS, RETRY_CAP_MS, ATTEMPTS).jitter_percent(JITTER_PERCENT))
    }
}

/// An operator asks for another round.
fn revival(from: &str) -> Edge {
    edge(from, "pending")
        .only(&["operator"])
        .patching(&["attempt", "next_attempt_at", "last_error"])
}

fn delivery() -> DeliveryRule {
    DeliveryRule {
        enqueued: outcome("pending", "dispatch.pending.enqueued"),
        claimable: vec!["pending".to_owned(), "delivering".to_owned()],
        claimed: outcome("delivering", "dispatch.delivering.attempt"),
        delivered: outcome("delivered", "dispatch.delivered.transport_ok"),
        awaiting_acknowledgement: outcome("pending", "dispatch.delivered.transport_ok"),
        acknowledged: outcome("acked", "dispatch.acked.consumer"),
        acknowledgement_missed: outcome("dead_letter", "dispatch.dead_letter.ack_timeout"),
        backed_off: outcome("pending", "dispatch.pending.retry_backoff"),
        exhausted: outcome("dead_letter", "dispatch.dead_letter.max_attempts"),
        refused: outcome("dead_letter", "dispatch.dead_letter.refused"),
        expired: outcome("expired", "dispatch.expired.deadline"),
        revived: outcome("pending", "dispatch.pending.enqueued"),
        ext: Vec::new(),
    }
}

runwarden_kit::export!(Dispatch: policy);

#[cfg(test)]
mod tests {
    use super::Dispatch;
    use runwarden_kit::Policy;
    use runwarden_kit::check::{edge_between, problems, targets};

    #[test]
    fn the_table_is_sound() {
        assert_eq!(problems(&Dispatch::describe()), [""; 0]);
    }

    #[test]
    fn a_dead_dispatch_is_revived_by_an_operator_alone() {
        let table = Dispatch::describe();
        for from in ["dead_letter", "expired"] {
            let revival = edge_between(&table, from, "pending").expect("there is a way");
            assert_eq!(revival.actors, ["operator"]);
            assert_eq!(revival.required_patch, ["attempt", "next_attempt_at", "last_error"]);
            assert_eq!(targets(&table, from), ["pending"]);
        }
    }

    #[test]
    fn a_claim_is_taken_over_only_by_who_names_the_attempt() {
        let table = Dispatch::describe();
        let again = edge_between(&table, "delivering", "delivering").expect("there is a way");
        assert_eq!(again.required_guards, ["attempt"]);
    }

    #[test]
    fn an_acknowledged_dispatch_stays_acknowledged() {
        assert_eq!(targets(&Dispatch::describe(), "acked"), [""; 0]);
        assert_eq!(targets(&Dispatch::describe(), "delivered"), [""; 0]);
    }

    #[test]
    fn the_retry_schedule_is_the_documented_one() {
        let schedule = Dispatch::describe().retry.expect("there is a schedule");
        let after = |attempt: u32| (schedule.base << attempt).min(schedule.cap) / 1000;
        let delays: Vec<i64> = (1..8).map(after).collect();
        assert_eq!(delays, [60, 120, 240, 480, 960, 1800, 1800]);
        assert_eq!((schedule.attempts, schedule.jitter_percent), (8, 10));
    }
}
