//! `[[plan]]`: what a handler sends of an event.

use std::collections::BTreeMap;

use super::cases::NOW;
use super::expect::{Came, Expected};
use crate::model::{
    BoundHandler, Destination, Entity, EnvelopeContext, EventFilter, EventId, Fields, HandlerDescriptor, Layer,
    PolicyPin, Reason, Reference, Source, TIMEOUT_DEFAULT, Tags, Transport, check_config, envelope_of,
};
use crate::policy::Ready;

/// The name of the binding, and of the entity that the event is of.
const CASE: &str = "case";

/// An event, and what a handler is to send of it.
#[derive(Clone, Debug)]
pub(super) struct PlanCase {
    pub(super) kind: String,
    pub(super) status: String,
    pub(super) success: bool,
    pub(super) terminal: bool,
    pub(super) reason: Option<String>,
    pub(super) tags: Tags,
    pub(super) config: Fields,
    pub(super) destinations: Vec<String>,
    pub(super) expected: Expected,
}

impl PlanCase {
    /// A run failed, and there is one destination.
    pub(super) fn failed_run() -> Self {
        Self {
            kind: "run".to_owned(),
            status: "failed".to_owned(),
            success: false,
            terminal: true,
            reason: None,
            tags: Tags::new(),
            config: Fields::new(),
            destinations: vec!["here".to_owned()],
            expected: Expected::default(),
        }
    }

    pub(super) fn described(&self) -> String {
        format!("{} {}", self.kind, self.status)
    }

    pub(super) fn asked(&self, ready: &Ready<HandlerDescriptor>, digest: &str) -> Result<Came, String> {
        let descriptor = ready.said();
        let problems = check_config(descriptor, &self.config);
        if let Some(problem) = problems.first() {
            return Err(format!("config: `{}` {}", problem.place, problem.message));
        }
        Ok(
            match ready.plan(&self.binding(descriptor, digest), &self.envelope(digest)) {
                Err(fault) => Came::new("fault", None, fault.to_string()),
                Ok(planned) if planned.is_empty() => Came::new("nothing", None, ""),
                Ok(planned) => {
                    let mut came = Came::new("planned", None, "");
                    came.bodies = planned.into_iter().map(|dispatch| dispatch.body).collect();
                    came
                }
            },
        )
    }

    /// A binding to these destinations, each reached by the first transport that the handler names.
    pub(super) fn binding(&self, descriptor: &HandlerDescriptor, digest: &str) -> BoundHandler {
        let first = descriptor.transports.first().map(String::as_str);
        let destination = Destination {
            transport: transport(first),
            timeout_ms: TIMEOUT_DEFAULT,
        };
        let named = self.destinations.iter().map(|name| (name.clone(), destination.clone()));
        BoundHandler {
            name: CASE.to_owned(),
            layer: Layer::Run,
            component: descriptor.label(),
            digest: digest.to_owned(),
            config: self.config.clone(),
            filter: EventFilter::default(),
            destinations: named.collect::<BTreeMap<_, _>>(),
        }
    }

    /// What is told of an entity that entered the status.
    pub(super) fn envelope(&self, digest: &str) -> serde_json::Value {
        let pin = PolicyPin {
            name: self.kind.clone(),
            version: "1.0.0".to_owned(),
            digest: digest.to_owned(),
            parameters: Fields::new(),
        };
        let mut entity = Entity::new(Reference::new(&self.kind, CASE), pin, NOW);
        entity.status.clone_from(&self.status);
        entity.terminal = self.terminal;
        entity.success = self.success;
        let code = self
            .reason
            .clone()
            .unwrap_or_else(|| format!("{}.{}.case", self.kind, self.status));
        entity.reason = Reason::code(&code);
        let context = EnvelopeContext {
            metadata: self.tags.clone(),
            ..EnvelopeContext::default()
        };
        envelope_of(&entity, None, &EventId::new(CASE, CASE, 1), &context)
    }
}

fn transport(word: Option<&str>) -> Transport {
    match word {
        Some("file") => Transport::File {
            path: "/dev/null".to_owned(),
        },
        Some("webhook") => Transport::Webhook {
            url: Source::Given("https://example.org/".to_owned()),
            secrets: Vec::new(),
            allow_private: false,
            ca_file: None,
        },
        _ => Transport::Exec {
            argv: vec!["true".to_owned()],
            env: Vec::new(),
        },
    }
}
