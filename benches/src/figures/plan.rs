//! A plan of the webhook handler that ships, beside a bare wasmtime program with the same component, limits and arguments.

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Context as _, Result};
use runwarden_host::model::{
    BoundHandler, Destination, EventFilter, Fields, HANDLER_KIND, Layer, Source, TIMEOUT_DEFAULT, Transport,
};
use serde_json::{Value, json};

use super::bare::bindings::exports::runwarden::notify::notifier::{Binding, Envelope, GuestIndices, PlannedDispatch};
use super::bare::bindings::runwarden::types::types::NamedJson;
use super::bare::{Bare, in_words};
use super::time;
use crate::harness::{Effort, Home, Row, Sample, Target, interleave, measured, median};

const RATIO_MAX: f64 = 1.3;

/// What is left of the time for all plans of one end.
const LEFT: Duration = Duration::from_secs(1);

/// One destination, one dispatch.
pub(super) fn figure(effort: Effort) -> Result<Vec<Row>> {
    let home = Home::new()?;
    let host = home.open()?;
    let components = host.store().components()?;
    let mut handlers = components.iter().filter(|record| record.kind == HANDLER_KIND);
    let record = handlers.find(|record| record.name == "webhook").context("it ships")?;
    let bytes = host
        .store()
        .component_bytes(&record.digest)?
        .context("it is installed")?;
    let handler = bound(&record.digest);
    let envelope = envelope();
    let bare = Bare::new(&bytes).map_err(in_words)?;
    let indices = GuestIndices::new(&bare.pre).map_err(in_words)?;
    let (event, binding) = (event(&envelope), binding());
    let count = effort.choose(200, 2_000);
    let operations = u64::try_from(count)?;
    let ours = || {
        measured(operations, || {
            for _ in 0..count {
                black_box(host.policies().plan(&handler, &envelope, LEFT)?);
            }
            Ok(())
        })
    };
    let floor = || {
        measured(operations, || {
            for _ in 0..count {
                black_box(plan(&bare, &indices, &event, &binding).map_err(in_words)?);
            }
            Ok(())
        })
    };
    let (ours, floor) = interleave(effort.choose(3, 15), ours, floor)?;
    let each = |samples: &[Sample]| time(median(samples.iter().map(Sample::each)));
    let ratio = median(ours.iter().zip(&floor).map(|(ours, floor)| ours.each() / floor.each()));
    let what = "plan call / bare wasmtime";
    Ok(vec![Row::ratio(
        what,
        each(&ours),
        each(&floor),
        ratio,
        Target::AtMost(RATIO_MAX),
    )])
}

/// Asks for a plan in the bare program.
fn plan(
    bare: &Bare,
    indices: &GuestIndices,
    event: &Envelope,
    binding: &Binding,
) -> wasmtime::Result<Vec<PlannedDispatch>> {
    let (mut store, instance) = bare.enter()?;
    let guest = indices.load(&mut store, &instance)?;
    guest
        .call_plan(&mut store, event, binding)?
        .map_err(|fault| wasmtime::Error::msg(fault.message))
}

/// The handler, bound to one address.
fn bound(digest: &str) -> BoundHandler {
    let transport = Transport::Webhook {
        url: Source::Given("https://example.org/hooks/runs".to_owned()),
        secrets: Vec::new(),
        allow_private: false,
        ca_file: None,
    };
    let destination = Destination {
        transport,
        timeout_ms: TIMEOUT_DEFAULT,
    };
    BoundHandler {
        name: "ops".to_owned(),
        layer: Layer::Store,
        component: "webhook".to_owned(),
        digest: digest.to_owned(),
        config: Fields::new(),
        filter: EventFilter::default(),
        destinations: [("hook".to_owned(), destination)].into(),
    }
}

/// An envelope of the usual size.
fn envelope() -> Value {
    json!({
        "schema": "runwarden.run-terminal",
        "schema_version": 1,
        "event_id": "store:one:2",
        "durable": true,
        "entity": {"kind": "run", "id": "one"},
        "previous_status": "running",
        "terminal_status": "failed",
        "status": "failed",
        "success": false,
        "reason": {"code": "run.failed.nonzero_exit", "summary": "it exited with 1"},
        "occurred_at": "1970-01-01T00:00:01Z",
        "started_at": "1970-01-01T00:00:00Z",
        "ended_at": "1970-01-01T00:00:01Z",
        "duration_ms": 1_000,
        "exit_code": 1,
        "term_signal": null,
        "spawn_kind": null,
        "cwd": "/srv/work",
        "run_dir": "/home/somebody/.local/state/runwarden/runs/one",
        "artifacts": [],
        "correlation": {"parents": [], "root": "one", "generation": 0},
        "metadata": {},
    })
}

/// The same arguments as the host gives.
fn event(envelope: &Value) -> Envelope {
    Envelope {
        event_id: "store:one:2".to_owned(),
        schema: "runwarden.run-terminal".to_owned(),
        kind: "run".to_owned(),
        id: "one".to_owned(),
        status: "failed".to_owned(),
        success: false,
        reason_code: "run.failed.nonzero_exit".to_owned(),
        occurred_at: 1_000,
        json: envelope.to_string(),
        ext: Vec::new(),
    }
}

fn binding() -> Binding {
    let default = |name: &str, json: &str| NamedJson {
        name: name.to_owned(),
        json: json.to_owned(),
    };
    Binding {
        name: "ops".to_owned(),
        config: vec![default("deadline_ms", "0"), default("wants_acknowledgement", "false")],
        destinations: vec!["hook".to_owned()],
        ext: Vec::new(),
    }
}
