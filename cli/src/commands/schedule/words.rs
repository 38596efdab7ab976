//! Schedules as JSON and in words.

use jiff::tz::TimeZone;
use runwarden_host::Error;
use runwarden_host::model::Timestamp;
use runwarden_host::model::schedule::Cadence;
use runwarden_host::store::Occurrence;
use runwarden_host::verbs::schedule::{ScheduleView, zone};
use serde_json::{Value, json};

use crate::errors::Failure;
use crate::output::{Page, Style, Text, moment, span};

/// A schedule that was looked for and is not there, and whatever else can fail.
pub(super) fn unknown(error: Error) -> Failure {
    let failure = Failure::from(&error);
    if !matches!(error, Error::NotFound { .. }) {
        return failure;
    }
    let hints = vec!["`runwarden schedule ls` shows what there is".to_owned()];
    Failure { hints, ..failure }
}

/// The members that every command shows of a schedule.
pub(super) fn document(view: &ScheduleView) -> Value {
    let schedule = &view.kept.schedule;
    let cadence = match &schedule.cadence {
        Cadence::Cron { expression, zone } => json!({"cron": expression, "zone": zone}),
        Cadence::Every(every) => json!({"every_ms": every}),
    };
    json!({
        "name": schedule.name,
        "cadence": cadence,
        "overlap": schedule.overlap,
        "missed": schedule.missed,
        "paused": schedule.paused,
        "created_at": schedule.created_at.to_rfc3339(),
        "created_by": view.kept.actor,
        "next_fire_at": view.upcoming.first().map(|next| next.to_rfc3339()),
        "problem": view.problem,
        "last": view.occurrences.first().map(occurrence),
        "submission": view.kept.submission,
    })
}

/// What became of a fire time.
pub(super) fn occurrence(occurrence: &Occurrence) -> Value {
    let entity = &occurrence.entity;
    json!({
        "scheduled_at": occurrence.nominal.to_rfc3339(),
        "fired_at": occurrence.fired_at.to_rfc3339(),
        "ref": entity.reference.to_string(),
        "status": entity.status,
        "reason": entity.reason.code,
        "terminal": entity.terminal,
        "success": entity.success,
    })
}

/// When it fires, as it was asked for.
pub(super) fn cadence(cadence: &Cadence) -> String {
    match cadence {
        Cadence::Cron { expression, .. } => expression.clone(),
        Cadence::Every(every) => format!("every {}", span(*every)),
    }
}

/// The zone in which it is read; an interval has none.
pub(super) fn zone_name(cadence: &Cadence) -> Option<&str> {
    match cadence {
        Cadence::Cron { zone, .. } => Some(zone),
        Cadence::Every(_) => None,
    }
}

/// The status of what stands for a fire time.
pub(super) fn status(occurrence: &Occurrence) -> Text {
    let entity = &occurrence.entity;
    Text::styled(Style::of_status(entity.terminal, entity.success), &entity.status)
}

/// A moment in the schedule's own zone and in UTC; an interval's in the reader's.
pub(super) fn in_both(at: Timestamp, cadence: &Cadence, page: &Page) -> String {
    let there = zone_name(cadence).and_then(|name| zone(name).ok());
    let local = match &there {
        Some(there) => wall(at, there),
        None => moment(at, page),
    };
    format!("{local}  ({})", at.to_rfc3339())
}

/// A moment on the wall clock of a zone, as JSON tells it: with its offset.
pub(super) fn local(at: Timestamp, cadence: &Cadence) -> Option<String> {
    let there = zone(zone_name(cadence)?).ok()?;
    let instant = jiff::Timestamp::from_millisecond(at.as_ms()).ok()?;
    Some(instant.display_with_offset(there.to_offset(instant)).to_string())
}

fn wall(at: Timestamp, zone: &TimeZone) -> String {
    jiff::Timestamp::from_millisecond(at.as_ms()).map_or_else(
        |_| at.to_rfc3339(),
        |instant| {
            let zoned = instant.to_zoned_datetime(zone.clone());
            zoned.strftime("%a %Y-%m-%d %H:%M:%S %Z").to_string()
        },
    )
}
