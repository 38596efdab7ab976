//! The tables of all policies, as their own crates describe them.

use runwarden_kit::{Descriptor, HandlerDescriptor, Notifier, Policy};

/// Directory below `policies/lifecycle` and table, in the order of `POLICIES`.
pub(crate) fn all() -> [(&'static str, Descriptor); 9] {
    [
        ("run", runwarden_policy_run::Run::describe()),
        ("session", runwarden_policy_session::Session::describe()),
        ("invocation", runwarden_policy_invocation::Invocation::describe()),
        ("play", runwarden_policy_play::Play::describe()),
        ("show", runwarden_policy_show::Show::describe()),
        ("team", runwarden_policy_team::Team::describe()),
        (
            "schedule-run-v1",
            runwarden_policy_schedule_run_v1::ScheduleRun::describe(),
        ),
        (
            "schedule-run-v2",
            runwarden_policy_schedule_run_v2::ScheduleRun::describe(),
        ),
        ("dispatch", runwarden_policy_dispatch::Dispatch::describe()),
    ]
}

/// Directory below `policies/notify` and what the handler says of itself, in the order of `HANDLERS`.
pub(crate) fn handlers() -> [(&'static str, HandlerDescriptor); 3] {
    [
        ("exec", runwarden_handler_exec::Exec::describe()),
        ("webhook", runwarden_handler_webhook::Webhook::describe()),
        ("file", runwarden_handler_file::File::describe()),
    ]
}

/// The table of a kind as the reference system has it: leased work of the first generation.
pub(crate) fn of_reference(kind: &str) -> Descriptor {
    let fits = |table: &Descriptor| table.kind == kind && table.version == "1.0.0";
    let mut tables = all().into_iter().map(|(_, table)| table);
    tables.find(fits).expect("the kind has a policy")
}

/// A file of recorded cases.
pub(crate) fn vectors(name: &str) -> serde_json::Value {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors");
    let path = std::path::Path::new(directory).join(name);
    let text = std::fs::read_to_string(path).expect("the vectors are in the repository");
    serde_json::from_str(&text).expect("the vectors are JSON")
}
