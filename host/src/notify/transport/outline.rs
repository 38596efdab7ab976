//! What would go with a body, told without sending anything: secrets, tokens and ids are named, never given.

use std::collections::BTreeMap;

use super::webhook::AGENT;
use crate::model::{Destination, SecretReference, Transport};

/// What goes with a body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outlined {
    /// Headers of a webhook.
    pub headers: BTreeMap<&'static str, String>,
    /// Variables of a program, those that are passed on left out.
    pub environment: BTreeMap<&'static str, String>,
}

/// What goes with a body to this destination.
pub fn outline(destination: &Destination, wants_acknowledgement: bool) -> Outlined {
    let mut outlined = Outlined::default();
    match &destination.transport {
        Transport::Exec { .. } => outlined.environment = environment(wants_acknowledgement),
        Transport::Webhook { secrets, .. } => outlined.headers = headers(secrets, wants_acknowledgement),
        Transport::File { .. } => {}
    }
    outlined
}

const ID: &str = "<the dispatch's id>";
const ATTEMPT: &str = "<from 1>";
const TOKEN: &str = "<made for each dispatch>";

fn headers(secrets: &[SecretReference], wants_acknowledgement: bool) -> BTreeMap<&'static str, String> {
    let mut headers = BTreeMap::from([
        ("user-agent", AGENT.to_owned()),
        ("content-type", "application/json".to_owned()),
        ("webhook-id", ID.to_owned()),
        ("webhook-timestamp", "<seconds since 1970>".to_owned()),
        ("runwarden-attempt", ATTEMPT.to_owned()),
    ]);
    if !secrets.is_empty() {
        let each = secrets.iter().map(|secret| match secret {
            SecretReference::Env(name) => format!("v1,<with ${name}>"),
            SecretReference::File(path) => format!("v1,<with {path}>"),
        });
        headers.insert("webhook-signature", each.collect::<Vec<_>>().join(" "));
    }
    if wants_acknowledgement {
        headers.insert("runwarden-acknowledgement", TOKEN.to_owned());
    }
    headers
}

fn environment(wants_acknowledgement: bool) -> BTreeMap<&'static str, String> {
    let mut environment = BTreeMap::from([
        ("RUNWARDEN_HOME", "<the home>".to_owned()),
        ("RUNWARDEN_DISPATCH_ID", ID.to_owned()),
        ("RUNWARDEN_ATTEMPT_NUMBER", ATTEMPT.to_owned()),
        ("RUNWARDEN_ATTEMPT_TOKEN", "<drawn for each attempt>".to_owned()),
        ("RUNWARDEN_EVENT_ID", "<the event's id>".to_owned()),
    ]);
    if wants_acknowledgement {
        environment.insert("RUNWARDEN_ACK_TOKEN", TOKEN.to_owned());
    }
    environment
}
