//! What components of this line say of themselves, as the model has it.

use serde_json::Value;

use super::bindings::exports::runwarden::notify::notifier;
use super::bindings::exports::runwarden::policy::lifecycle as wit;
use super::bindings::runwarden::types::types as shared;
use crate::model::{
    Cascade, DeliveryRule, Descriptor, DurationMs, Edge, ExecutionRule, Extension, Field, FieldKind, Finding,
    HandlerDescriptor, HealthThreshold, KillRow, LeaseRule, Migration, Outcome, Parameter, Reads, ReasonCode,
    RetrySchedule, SameStatus, Severity, Status, StatusMapping, VerdictRow,
};

/// Gathers what cannot be read while the rest is read.
#[derive(Default)]
struct Reader {
    problems: Vec<Finding>,
}

/// The canonical descriptor of what a component described.
///
/// # Errors
/// Every value that is no word or no JSON, with its place.
pub(super) fn policy(raw: wit::Descriptor) -> Result<Descriptor, Vec<Finding>> {
    let mut reader = Reader::default();
    let read = &mut reader;
    let descriptor = Descriptor {
        kind: raw.kind,
        name: raw.name,
        version: raw.version,
        summary: raw.summary,
        statuses: raw.statuses.into_iter().map(|status| read.status(status)).collect(),
        edges: raw.edges.into_iter().map(|edge| read.edge(edge)).collect(),
        same_status: read.same_status(&raw.same_status),
        fields: raw.fields.into_iter().map(|field| read.field(field)).collect(),
        reason_codes: raw
            .reason_codes
            .into_iter()
            .map(|r| ReasonCode {
                code: r.code,
                summary: r.summary,
            })
            .collect(),
        emits_events: raw.emits_events,
        measures_end: raw.measures_end,
        execution: raw.execution.map(|rule| read.execution(rule)),
        verdicts: raw.verdicts.into_iter().map(|row| read.verdict(row)).collect(),
        kill: raw.kill.into_iter().map(|row| read.kill(row)).collect(),
        lease: raw.lease.map(|rule| read.lease(rule)),
        delivery: raw.delivery.map(|rule| read.delivery(rule)),
        retry: raw.retry.map(|rule| read.retry(rule)),
        health: raw.health.into_iter().map(health).collect(),
        parameters: raw
            .parameters
            .into_iter()
            .map(|parameter| read.parameter("parameters", parameter))
            .collect(),
        reads: read.reads(raw.reads),
        migrations: raw.migrations.into_iter().map(|row| read.migration(row)).collect(),
        ext: read.ext("ext", raw.ext),
    };
    if reader.problems.is_empty() {
        Ok(descriptor)
    } else {
        Err(reader.problems)
    }
}

/// The canonical descriptor of what a handler described.
///
/// # Errors
/// As [`policy`].
pub(super) fn handler(raw: notifier::Descriptor) -> Result<HandlerDescriptor, Vec<Finding>> {
    let mut reader = Reader::default();
    let read = &mut reader;
    let descriptor = HandlerDescriptor {
        name: raw.name,
        version: raw.version,
        summary: raw.summary,
        config: raw
            .config
            .into_iter()
            .map(|parameter| read.parameter("config", parameter))
            .collect(),
        transports: raw.transports,
        ext: read.ext("ext", raw.ext),
    };
    if reader.problems.is_empty() {
        Ok(descriptor)
    } else {
        Err(reader.problems)
    }
}

fn outcome(raw: shared::Outcome) -> Outcome {
    Outcome {
        status: raw.status,
        code: raw.code,
    }
}

fn health(raw: wit::HealthThreshold) -> HealthThreshold {
    HealthThreshold {
        spawn_kind: raw.spawn_kind,
        idle: DurationMs::from_ms(raw.idle),
        stale: DurationMs::from_ms(raw.stale),
    }
}

impl Reader {
    fn problem(&mut self, place: &str, message: String) {
        self.problems.push(Finding {
            severity: Severity::Error,
            place: place.to_owned(),
            message,
        });
    }

    fn json(&mut self, place: &str, text: &str) -> Value {
        serde_json::from_str(text).unwrap_or_else(|error| {
            self.problem(place, format!("no JSON value: {error}"));
            Value::Null
        })
    }

    fn ext(&mut self, place: &str, raw: Vec<shared::ExtField>) -> Vec<Extension> {
        let extension = |raw: shared::ExtField| {
            let json = self.json(&format!("{place}.ext.{}", raw.key), &raw.json);
            Extension {
                key: raw.key,
                json,
                critical: raw.critical,
            }
        };
        raw.into_iter().map(extension).collect()
    }

    fn status(&mut self, raw: wit::Status) -> Status {
        Status {
            ext: self.ext(&format!("statuses.{}", raw.name), raw.ext),
            name: raw.name,
            summary: raw.summary,
            initial: raw.initial,
            creation_code: raw.creation_code,
            terminal: raw.terminal,
            success: raw.success,
            announced: raw.announced,
        }
    }

    fn edge(&mut self, raw: wit::Edge) -> Edge {
        Edge {
            ext: self.ext("edges", raw.ext),
            from: raw.from,
            to: raw.to,
            actors: raw.actors,
            required_patch: raw.required_patch,
            required_guards: raw.required_guards,
            guarded: raw.guarded,
        }
    }

    fn same_status(&mut self, word: &str) -> SameStatus {
        SameStatus::from_word(word).unwrap_or_else(|| {
            self.problem("same_status", format!("`{word}` is neither append nor reject"));
            SameStatus::Reject
        })
    }

    fn kind(&mut self, place: &str, word: &str) -> FieldKind {
        FieldKind::from_word(word).unwrap_or_else(|| {
            let known = "integer, number, text, boolean, timestamp, json";
            self.problem(place, format!("`{word}` is no field kind: one of {known}"));
            FieldKind::Json
        })
    }

    fn field(&mut self, raw: wit::Field) -> Field {
        let place = format!("fields.{}", raw.name);
        Field {
            kind: self.kind(&place, &raw.kind),
            ext: self.ext(&place, raw.ext),
            name: raw.name,
            summary: raw.summary,
        }
    }

    fn execution(&mut self, raw: wit::ExecutionRule) -> ExecutionRule {
        ExecutionRule {
            start: outcome(raw.start),
            spawn_failed: outcome(raw.spawn_failed),
            directory_missing: outcome(raw.directory_missing),
            identity_lost: outcome(raw.identity_lost),
            timed_out: outcome(raw.timed_out),
            hung_up: outcome(raw.hung_up),
            interrupted: outcome(raw.interrupted),
            terminated: outcome(raw.terminated),
            parent_gone: outcome(raw.parent_gone),
            host_restarted: outcome(raw.host_restarted),
            ended_unobserved: outcome(raw.ended_unobserved),
            verdict_failed: outcome(raw.verdict_failed),
            ext: self.ext("execution", raw.ext),
        }
    }

    fn verdict(&mut self, raw: wit::VerdictRow) -> VerdictRow {
        VerdictRow {
            exit_codes: raw.exit_codes,
            signals: raw.signals,
            causes: raw.causes,
            evidence: raw.evidence,
            outcome: outcome(raw.outcome),
            ext: self.ext("verdicts", raw.ext),
        }
    }

    fn kill(&mut self, raw: wit::KillRow) -> KillRow {
        let cascade = Cascade::from_word(&raw.cascade).unwrap_or_else(|| {
            let message = format!("`{}` is neither recursive nor always", raw.cascade);
            self.problem("kill.cascade", message);
            Cascade::Recursive
        });
        KillRow {
            killable: raw.killable,
            goes_to: raw.goes_to,
            cascade,
            term_code: raw.term_code,
            force_code: raw.force_code,
            stale_code: raw.stale_code,
            ext: self.ext("kill", raw.ext),
        }
    }

    fn migration(&mut self, raw: wit::Migration) -> Migration {
        let mappings = raw.statuses.into_iter();
        Migration {
            from_name: raw.from_name,
            from_version: raw.from_version,
            statuses: mappings
                .map(|mapping| StatusMapping {
                    from: mapping.from,
                    to: mapping.to,
                })
                .collect(),
            ext: self.ext("migrations.ext", raw.ext),
        }
    }

    fn lease(&mut self, raw: wit::LeaseRule) -> LeaseRule {
        LeaseRule {
            queued: raw.queued,
            claimed: outcome(raw.claimed),
            active: raw.active,
            lease: DurationMs::from_ms(raw.lease),
            grace: DurationMs::from_ms(raw.grace),
            heartbeat_limit: DurationMs::from_ms(raw.heartbeat_limit),
            attempts: raw.attempts,
            lapsed: outcome(raw.lapsed),
            recovered: raw.recovered.map(outcome),
            fenced: raw.fenced.map(outcome),
            exhausted: outcome(raw.exhausted),
            backed_off: raw.backed_off.map(outcome),
            retry_due: raw.retry_due.map(outcome),
            handed_back: raw.handed_back.map(outcome),
            dependency_waiting: raw.dependency_waiting.map(outcome),
            dependency_met: raw.dependency_met.map(outcome),
            dependency_failed: raw.dependency_failed.map(outcome),
            ext: self.ext("lease", raw.ext),
        }
    }

    fn delivery(&mut self, raw: wit::DeliveryRule) -> DeliveryRule {
        DeliveryRule {
            enqueued: outcome(raw.enqueued),
            claimable: raw.claimable,
            claimed: outcome(raw.claimed),
            delivered: outcome(raw.delivered),
            awaiting_acknowledgement: outcome(raw.awaiting_acknowledgement),
            acknowledged: outcome(raw.acknowledged),
            acknowledgement_missed: outcome(raw.acknowledgement_missed),
            backed_off: outcome(raw.backed_off),
            exhausted: outcome(raw.exhausted),
            refused: outcome(raw.refused),
            expired: outcome(raw.expired),
            revived: outcome(raw.revived),
            ext: self.ext("delivery", raw.ext),
        }
    }

    fn retry(&mut self, raw: wit::RetrySchedule) -> RetrySchedule {
        RetrySchedule {
            base: DurationMs::from_ms(raw.base),
            cap: DurationMs::from_ms(raw.cap),
            attempts: raw.attempts,
            jitter_percent: raw.jitter_percent,
            ext: self.ext("retry", raw.ext),
        }
    }

    fn parameter(&mut self, list: &str, raw: shared::Parameter) -> Parameter {
        let place = format!("{list}.{}", raw.name);
        Parameter {
            kind: self.kind(&place, &raw.kind),
            default: self.json(&place, &raw.default),
            choices: raw.choices.iter().map(|choice| self.json(&place, choice)).collect(),
            ext: self.ext(&place, raw.ext),
            name: raw.name,
            summary: raw.summary,
        }
    }

    fn reads(&mut self, raw: wit::Reads) -> Reads {
        Reads {
            children: raw.children,
            history: raw.history,
            tags: raw.tags,
            last_output_bytes: raw.last_output_bytes,
            ext: self.ext("reads", raw.ext),
        }
    }
}
