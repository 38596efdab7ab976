//! What a handler is asked, and what it answered: judged like input from a stranger, whole or not at all.

use std::collections::HashSet;

use serde_json::Value;

use super::answers::Answer;
use super::calls::{Callable, PLAN};
use super::fault::PolicyFault;
use super::text::line;
use super::unjudged::{Answered, Binding, Dispatch, Event};
use crate::model::{
    BoundHandler, HandlerDescriptor, PLANNED_MAX, PlannedDispatch, Timestamp, body_problem, deadline_problem,
    dedup_key, filled_config, is_dispatch_key,
};
use crate::store::StoreError;

impl Callable<'_> {
    /// Asks a handler what is to be sent of an event.
    pub(super) fn plan(
        &self,
        descriptor: &HandlerDescriptor,
        handler: &BoundHandler,
        envelope: &Value,
    ) -> Result<Vec<PlannedDispatch>, PolicyFault> {
        let event = event(envelope).ok_or_else(|| PolicyFault::Store {
            policy: self.label.to_owned(),
            source: StoreError::Corrupt {
                path: "envelope".to_owned(),
                what: "what is to be told of an event is not complete".to_owned(),
            },
        })?;
        let binding = Binding {
            name: &handler.name,
            config: filled_config(descriptor, &handler.config),
            destinations: handler.destinations.keys().cloned().collect(),
        };
        let answer = (self.adapter().plan)(self, &event, &binding)?;
        let plan = Plan {
            answer: self.answer(PLAN),
            handler,
            event_id: &event.event_id,
            occurred_at: event.occurred_at,
        };
        plan.judge(answer)
    }
}

/// An envelope as a handler reads it; none when it lacks what every envelope has.
fn event(envelope: &Value) -> Option<Event> {
    let text = |pointer: &str| envelope.pointer(pointer)?.as_str().map(str::to_owned);
    Some(Event {
        event_id: text("/event_id")?,
        schema: text("/schema")?,
        kind: text("/entity/kind")?,
        id: text("/entity/id")?,
        status: text("/status")?,
        success: envelope.get("success")?.as_bool()?,
        reason_code: text("/reason/code")?,
        occurred_at: Timestamp::parse_rfc3339(&text("/occurred_at")?)?,
        json: envelope.to_string(),
    })
}

/// A plan that was asked for.
struct Plan<'a> {
    answer: Answer<'a>,
    handler: &'a BoundHandler,
    event_id: &'a str,
    occurred_at: Timestamp,
}

impl Plan<'_> {
    fn judge(&self, answer: Answered<Vec<Dispatch>>) -> Result<Vec<PlannedDispatch>, PolicyFault> {
        let planned = answer.map_err(|fault| self.answer.reported(&fault))?;
        if planned.len() > PLANNED_MAX {
            let found = planned.len();
            return Err(self.bad(format!("{found} dispatches, at most {PLANNED_MAX} are admitted")));
        }
        let keys = planned.iter().filter_map(|dispatch| dispatch.dedup_key.as_deref());
        let names = planned.iter().map(|dispatch| dispatch.destination.as_str());
        self.answer.weigh(
            names
                .chain(keys)
                .map(str::as_bytes)
                .chain(planned.iter().map(|dispatch| dispatch.body.as_slice())),
        )?;
        let dispatches: Vec<PlannedDispatch> = planned
            .into_iter()
            .enumerate()
            .map(|(place, raw)| self.dispatch(place, raw))
            .collect::<Result<_, PolicyFault>>()?;
        let mut seen = HashSet::new();
        match dispatches.iter().position(|dispatch| !seen.insert(&dispatch.dedup_key)) {
            Some(place) => Err(self.bad(format!("dispatch {place} has the key of another"))),
            None => Ok(dispatches),
        }
    }

    /// One dispatch: to a destination of the binding, with a body, a key and a deadline that can be kept.
    fn dispatch(&self, place: usize, raw: Dispatch) -> Result<PlannedDispatch, PolicyFault> {
        self.answer.understood(raw.unknown.as_deref())?;
        let bad = |why: &str| self.bad(format!("dispatch {place}: {why}"));
        let Some(destination) = self.handler.destinations.get(&raw.destination) else {
            return Err(bad(&format!(
                "its binding has no destination `{}`",
                line(&raw.destination)
            )));
        };
        if let Some(why) = body_problem(&destination.transport, &raw.body) {
            return Err(bad(&format!("its body cannot be sent: {why}")));
        }
        let key = raw.dedup_key.as_deref();
        if let Some(key) = key.filter(|key| !is_dispatch_key(key)) {
            return Err(bad(&format!("`{}` is no key for a dispatch", line(key))));
        }
        let deadline = raw.deadline_ms.map(Timestamp::from_ms);
        if let Some(why) = deadline.and_then(|deadline| deadline_problem(self.occurred_at, deadline)) {
            return Err(bad(&format!("its deadline cannot be kept: {why}")));
        }
        Ok(PlannedDispatch {
            dedup_key: dedup_key(self.event_id, &self.handler.name, place, key),
            destination: raw.destination,
            body: raw.body,
            deadline,
            wants_acknowledgement: raw.wants_acknowledgement,
        })
    }

    fn bad(&self, why: String) -> PolicyFault {
        self.answer.bad(why)
    }
}
