//! A dispatch as it is enqueued: an entity like any other, pinned to the dispatch policy in force.

use crate::error::Error;
use crate::host::Host;
use crate::model::{Actor, Create, DISPATCH_KIND, Dispatch, Fields, NewDispatch, Reason, create};
use crate::policy::{Selected, sha256_hex};

/// The policy that dispatches are created under now.
pub(super) fn dispatch_policy(host: &Host) -> Result<Selected, Error> {
    host.active_policy(DISPATCH_KIND)
}

/// The digest by which what is sent to one place is told apart.
pub(super) fn target_digest(target: &crate::model::Destination) -> String {
    let text = serde_json::to_string(target).expect("a destination holds only text and numbers");
    sha256_hex(text.as_bytes())
}

/// Makes the rows of a dispatch, due now.
pub(super) fn enqueued(
    host: &Host,
    policy: &Selected,
    actor: &Actor,
    dispatch: Dispatch,
) -> Result<NewDispatch, Error> {
    let now = host.now();
    let mut command = Create::new(DISPATCH_KIND, &host.draw_id()?, actor.clone());
    let rule = policy.lifecycle.descriptor().delivery.as_ref();
    if let Some(rule) = rule {
        command.status = Some(rule.enqueued.status.clone());
        command.reason = Reason::code(&rule.enqueued.code);
    }
    let mut fields = Fields::new();
    fields.insert("attempt".to_owned(), 0.into());
    fields.insert("next_attempt_at".to_owned(), now.as_ms().into());
    command.fields = fields;
    let made = create(&policy.lifecycle, &policy.pin, &command, host.store().name(), now)?;
    Ok(NewDispatch {
        entity: made.entity,
        row: made.row,
        dispatch,
    })
}
