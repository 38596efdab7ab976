//! The records of `lifecycle.wit`, their fields in its order: that order is their layout.

use super::layout::{Flat, Image, Shape, shape_through, store_field};
use crate::model::{
    DeliveryRule, Descriptor, Edge, ExecutionRule, Extension, Field, HealthThreshold, KillRow, LeaseRule, Migration,
    Outcome, Parameter, Reads, ReasonCode, RetrySchedule, Status, StatusMapping, VerdictRow,
};

/// Hands every record with its fields to a macro.
macro_rules! every_record {
    ($macro:ident) => {
        $macro! {
            Extension { key, json, critical }
            Status { name, summary, initial, creation_code, terminal, success, announced, ext }
            Edge { from, to, actors, required_patch, required_guards, guarded, ext }
            Field { name, kind, summary, ext }
            ReasonCode { code, summary }
            Outcome { status, code }
            ExecutionRule {
                start, spawn_failed, directory_missing, identity_lost, timed_out, hung_up, interrupted, terminated, parent_gone,
                host_restarted, ended_unobserved, verdict_failed, ext,
            }
            VerdictRow { exit_codes, signals, causes, evidence, outcome, ext }
            KillRow { killable, goes_to, cascade, term_code, force_code, stale_code, ext }
            LeaseRule {
                queued, claimed, active, lease, grace, heartbeat_limit, attempts, lapsed, recovered, fenced, exhausted, backed_off,
                retry_due, handed_back, dependency_waiting, dependency_met, dependency_failed, ext,
            }
            DeliveryRule {
                enqueued, claimable, claimed, delivered, awaiting_acknowledgement, acknowledged, acknowledgement_missed, backed_off,
                exhausted, refused, expired, revived, ext,
            }
            RetrySchedule { base, cap, attempts, jitter_percent, ext }
            HealthThreshold { spawn_kind, idle, stale }
            Parameter { name, kind, default, choices, summary, ext }
            Reads { children, history, tags, last_output_bytes, ext }
            StatusMapping { from, to }
            Migration { from_name, from_version, statuses, ext }
            Descriptor {
                kind, name, version, summary, statuses, edges, same_status, fields, reason_codes, emits_events, measures_end,
                execution, verdicts, kill, lease, delivery, retry, health, parameters, reads, migrations, ext,
            }
        }
    };
}
#[cfg(test)]
pub(super) use every_record;

macro_rules! flat {
    ($($record:ty { $($field:ident),+ $(,)? })+) => {
        $(impl Flat for $record {
            fn shape() -> Shape {
                Shape::record([$(shape_through(|record: &Self| &record.$field)),+])
            }

            fn store(&self, image: &mut Image, address: usize) {
                let after = address;
                $(let after = store_field(&self.$field, image, after);)+
                debug_assert!(after <= address + Self::shape().size, "fields stay in their record");
            }
        })+
    };
}

every_record!(flat);
