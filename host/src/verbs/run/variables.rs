//! What every program of a run finds in its environment beside what it was given.

use super::{Attempt, Work};
use crate::host::Host;
use crate::model::Bytes;
use crate::process::{self, RunDir};

/// Names and values: which run it is, which attempt, where its files are.
pub(super) fn own(host: &Host, attempt: &Attempt, work: &Work, directory: &RunDir) -> Vec<(Bytes, Bytes)> {
    let reference = &attempt.entity.reference;
    let lease = work.lease.as_ref();
    let number = lease.map(|lease| lease.attempt).or(attempt.entity.structural.attempt);
    let named = |name: &str, value: &str| (Bytes::from(name), Bytes::from(value));
    let mut variables = vec![
        named("RUNWARDEN_REF", &reference.to_string()),
        named("RUNWARDEN_ID", &reference.id),
        named("RUNWARDEN_ATTEMPT", &number.unwrap_or(1).to_string()),
        named(process::TOKEN_VARIABLE, &attempt.token),
        (
            Bytes::from("RUNWARDEN_RUN_DIR"),
            Bytes::from(directory.path().as_os_str()),
        ),
        (
            Bytes::from("RUNWARDEN_HOME"),
            Bytes::from(host.config().home().as_os_str()),
        ),
    ];
    if let Some(lease) = lease {
        variables.push(named("RUNWARDEN_LEASE_REF", &lease.reference.to_string()));
        variables.push(named("RUNWARDEN_LEASE_TOKEN", &lease.fence.to_string()));
    }
    variables
}
