//! A descriptor as JSON: every key, in the order of the WIT, in snake case.

use runwarden_kit::{
    DeliveryRule, Descriptor, Edge, ExecutionRule, ExtField, Field, HandlerDescriptor, HealthThreshold, KillRow,
    LeaseRule, Migration, Outcome, Parameter, Reads, ReasonCode, RetrySchedule, Status, StatusMapping, VerdictRow,
};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

/// Indented by two spaces, with a final newline.
pub(crate) fn pretty(table: &impl ToJson) -> String {
    let text = serde_json::to_string_pretty(&table.json()).expect("it is plain data");
    text + "\n"
}

pub(crate) enum Json {
    Value(Value),
    List(Vec<Json>),
    Record(Vec<(&'static str, Json)>),
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Value(value) => value.serialize(serializer),
            Self::List(items) => items.serialize(serializer),
            Self::Record(fields) => {
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                for (key, value) in fields {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}

pub(crate) trait ToJson {
    fn json(&self) -> Json;
}

macro_rules! record {
    ($($type:ident { $($field:ident),+ $(,)? })+) => {
        $(impl ToJson for $type {
            fn json(&self) -> Json {
                Json::Record(vec![$((stringify!($field), self.$field.json())),+])
            }
        })+
    };
}

record! {
    Status { name, summary, initial, creation_code, terminal, success, announced, ext }
    Edge { from, to, actors, required_patch, required_guards, guarded, ext }
    Field { name, kind, summary, ext }
    ReasonCode { code, summary }
    Outcome { status, code }
    ExecutionRule {
        start, spawn_failed, directory_missing, identity_lost, timed_out, hung_up, interrupted,
        terminated, parent_gone, host_restarted, ended_unobserved, verdict_failed, ext,
    }
    VerdictRow { exit_codes, signals, causes, evidence, outcome, ext }
    KillRow { killable, goes_to, cascade, term_code, force_code, stale_code, ext }
    LeaseRule {
        queued, claimed, active, lease, grace, heartbeat_limit, attempts, lapsed, recovered, fenced,
        exhausted, backed_off, retry_due, handed_back, dependency_waiting, dependency_met,
        dependency_failed, ext,
    }
    DeliveryRule {
        enqueued, claimable, claimed, delivered, awaiting_acknowledgement, acknowledged,
        acknowledgement_missed, backed_off, exhausted, refused, expired, revived, ext,
    }
    RetrySchedule { base, cap, attempts, jitter_percent, ext }
    HealthThreshold { spawn_kind, idle, stale }
    StatusMapping { from, to }
    Migration { from_name, from_version, statuses, ext }
    Reads { children, history, tags, last_output_bytes, ext }
    Descriptor {
        kind, name, version, summary, statuses, edges, same_status, fields, reason_codes,
        emits_events, measures_end, execution, verdicts, kill, lease, delivery, retry, health,
        parameters, reads, migrations, ext,
    }
    HandlerDescriptor { name, version, summary, config, transports, ext }
}

impl ToJson for Parameter {
    fn json(&self) -> Json {
        let choices = self.choices.iter().map(|choice| embedded(choice));
        Json::Record(vec![
            ("name", self.name.json()),
            ("kind", self.kind.json()),
            ("default", embedded(&self.default)),
            ("choices", Json::List(choices.collect())),
            ("summary", self.summary.json()),
            ("ext", self.ext.json()),
        ])
    }
}

impl ToJson for ExtField {
    fn json(&self) -> Json {
        Json::Record(vec![
            ("key", self.key.json()),
            ("json", embedded(&self.json)),
            ("critical", self.critical.json()),
        ])
    }
}

/// JSON text stands as the value that it is.
fn embedded(json: &str) -> Json {
    Json::Value(serde_json::from_str(json).expect("it is JSON text"))
}

impl ToJson for String {
    fn json(&self) -> Json {
        Json::Value(Value::from(self.as_str()))
    }
}

impl ToJson for bool {
    fn json(&self) -> Json {
        Json::Value(Value::from(*self))
    }
}

impl ToJson for i64 {
    fn json(&self) -> Json {
        Json::Value(Value::from(*self))
    }
}

impl ToJson for (i64, i64) {
    fn json(&self) -> Json {
        Json::List(vec![self.0.json(), self.1.json()])
    }
}

impl<T: ToJson> ToJson for Vec<T> {
    fn json(&self) -> Json {
        Json::List(self.iter().map(ToJson::json).collect())
    }
}

impl<T: ToJson> ToJson for Option<T> {
    fn json(&self) -> Json {
        self.as_ref().map_or(Json::Value(Value::Null), ToJson::json)
    }
}
