//! A guard call through the host, beside a bare wasmtime program with the same component, limits and arguments.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use runwarden_host::model::{Actor, Entity, Fields, Reason};
use runwarden_host::policy::{GuardRequest, Surroundings, sha256_hex};

use super::bare::bindings::exports::runwarden::policy::guard::{GuestIndices, Request};
use super::bare::bindings::runwarden::types::types;
use super::bare::{Bare, in_words};
use super::{ping, time};
use crate::harness::{Effort, Home, Row, Sample, Target, interleave, measured, median};

const RATIO_MAX: f64 = 1.3;

/// The guard of the kit's example `review`.
pub(super) fn figure(effort: Effort) -> Result<Vec<Row>> {
    let bytes = std::fs::read(component()?)?;
    let home = Home::new()?;
    let host = home.open()?;
    ping::install_as(&host, &sha256_hex(&bytes), &bytes)?;
    let mut entity = ping::make(&host, "one")?;
    entity.status = "open".to_owned();
    let count = effort.choose(200, 2_000);
    let operations = u64::try_from(count)?;
    let (reason, actor) = (Reason::code("review.waived.quorum"), Actor::new("operator", "bench"));
    let (fields, surroundings) = (Fields::new(), Surroundings::default());
    let asked = GuardRequest {
        entity: &entity,
        target: "waived",
        reason: &reason,
        actor: &actor,
        patch: &fields,
        guards: &fields,
        overridden: false,
        surroundings: &surroundings,
    };
    let bare = Bare::new(&bytes).map_err(in_words)?;
    let indices = GuestIndices::new(&bare.pre).map_err(in_words)?;
    let request = request(&entity);
    let refused = |answer: Option<String>| answer.context("no child has approved: the guard refuses");
    let ours = || {
        measured(operations, || {
            for _ in 0..count {
                let answer = host.policies().guard(&entity.policy, asked)?;
                black_box(refused(answer.map(|(code, _)| code))?);
            }
            Ok(())
        })
    };
    let floor = || {
        measured(operations, || {
            for _ in 0..count {
                black_box(refused(ask(&bare, &indices, &request).map_err(in_words)?)?);
            }
            Ok(())
        })
    };
    let (ours, floor) = interleave(effort.choose(3, 15), ours, floor)?;
    let entering = measured(operations, || {
        for _ in 0..count {
            black_box(bare.enter().map_err(in_words)?);
        }
        Ok(())
    })?;
    let each = |samples: &[Sample]| time(median(samples.iter().map(Sample::each)));
    let ratio = median(ours.iter().zip(&floor).map(|(ours, floor)| ours.each() / floor.each()));
    let what = "guard call / bare wasmtime";
    let rate = |samples: &[Sample]| format!("{:.0}/s", 1.0 / median(samples.iter().map(Sample::each)));
    Ok(vec![
        Row::ratio(what, each(&ours), each(&floor), ratio, Target::AtMost(RATIO_MAX)),
        Row::fact("… calls in a second, one caller", rate(&ours), rate(&floor)),
        Row::fact(
            "… of which a store, an instance and their end take",
            String::new(),
            time(entering.each()),
        ),
    ])
}

/// Builds the example for wasm.
fn component() -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target = std::env::current_exe()?
        .parent()
        .context("a program is in a directory")?
        .join("guests");
    let mut build = Command::new("cargo");
    build
        .current_dir(root)
        .args(["build", "--quiet", "-p", "runwarden-kit", "--example", "review"]);
    build
        .args([
            "--target",
            "wasm32-unknown-unknown",
            "--profile",
            "guest",
            "--target-dir",
        ])
        .arg(&target);
    build.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", "wasm-component-ld");
    ensure!(build.spawn()?.wait()?.success(), "cargo did not build the example");
    Ok(target.join("wasm32-unknown-unknown/guest/examples/review.wasm"))
}

/// Asks the guard in the bare program: the code of its refusal.
fn ask(bare: &Bare, indices: &GuestIndices, request: &Request) -> wasmtime::Result<Option<String>> {
    let (mut store, instance) = bare.enter()?;
    let guest = indices.load(&mut store, &instance)?;
    let decision = guest
        .call_evaluate(&mut store, request)?
        .map_err(|fault| wasmtime::Error::msg(fault.message))?;
    Ok((!decision.admitted).then_some(decision.code))
}

/// The same arguments as the host gives.
fn request(entity: &Entity) -> Request {
    let reason = |code: &str| types::Reason {
        code: code.to_owned(),
        summary: None,
        evidence: Vec::new(),
    };
    Request {
        entity: types::Entity {
            kind: entity.reference.kind.clone(),
            id: entity.reference.id.clone(),
            status: entity.status.clone(),
            version: entity.version,
            reason: reason(&entity.reason.code),
            fields: Vec::new(),
            tags: Vec::new(),
            created_at: entity.created_at.as_ms(),
            updated_at: entity.updated_at.as_ms(),
            root: entity.reference.id.clone(),
            generation: 0,
            chain_parent: None,
            ext: Vec::new(),
        },
        target: "waived".to_owned(),
        reason: reason("review.waived.quorum"),
        actor: types::Actor {
            kind: "operator".to_owned(),
            id: "bench".to_owned(),
        },
        patch: Vec::new(),
        guards: Vec::new(),
        overridden: false,
        surroundings: types::Surroundings {
            now: 0,
            parameters: Vec::new(),
            children: Vec::new(),
            history: Vec::new(),
            ext: Vec::new(),
        },
        ext: Vec::new(),
    }
}
