//! The functions that components of this line export: one call each, in a store of its own.

use super::bindings::exports::runwarden::notify::notifier;
use super::bindings::exports::runwarden::policy::{execution, guard, health, lifecycle, migrate};
use super::{answers, descriptors, requests};
use crate::model::{Descriptor, HandlerDescriptor, Reads};
use crate::policy::calls::{self, Callable, GuardRequest, HealthRequest, MapRequest, VerdictRequest};
use crate::policy::fault::{InstallError, PolicyFault};
use crate::policy::unjudged::{Assessment, Binding, Called, Decision, Dispatch, Event, Judgement, Mapping};

/// Whether an exported interface has the functions and types of this line; runs nothing but instantiation.
pub(super) fn probe(callable: &Callable<'_>, interface: &str) -> Result<(), PolicyFault> {
    let pre = callable.pre();
    callable.enter(calls::INSTANTIATION, |store, instance| match interface {
        "runwarden:policy/lifecycle" => lifecycle::GuestIndices::new(pre)?.load(store, instance).map(drop),
        "runwarden:policy/guard" => guard::GuestIndices::new(pre)?.load(store, instance).map(drop),
        "runwarden:policy/execution" => execution::GuestIndices::new(pre)?.load(store, instance).map(drop),
        "runwarden:policy/health" => health::GuestIndices::new(pre)?.load(store, instance).map(drop),
        "runwarden:policy/migrate" => migrate::GuestIndices::new(pre)?.load(store, instance).map(drop),
        "runwarden:notify/notifier" => notifier::GuestIndices::new(pre)?.load(store, instance).map(drop),
        _ => Ok(()),
    })?;
    Ok(())
}

pub(super) fn describe(callable: &Callable<'_>) -> Result<Descriptor, InstallError> {
    let indices = || lifecycle::GuestIndices::new(callable.pre());
    let raw = callable.run(
        calls::DESCRIBE,
        |store, instance| indices()?.load(store, instance),
        |guest, store| guest.call_describe(store),
    );
    descriptors::policy(raw.map_err(InstallError::Fault)?).map_err(InstallError::unusable)
}

pub(super) fn describe_handler(callable: &Callable<'_>) -> Result<HandlerDescriptor, InstallError> {
    let indices = || notifier::GuestIndices::new(callable.pre());
    let raw = callable.run(
        calls::DESCRIBE_HANDLER,
        |store, instance| indices()?.load(store, instance),
        |guest, store| guest.call_describe(store),
    );
    descriptors::handler(raw.map_err(InstallError::Fault)?).map_err(InstallError::unusable)
}

pub(super) fn guard(callable: &Callable<'_>, reads: &Reads, asked: GuardRequest<'_>) -> Called<Decision> {
    let request = requests::guard(reads, asked);
    let indices = || guard::GuestIndices::new(callable.pre());
    let answer = callable.run(
        calls::GUARD,
        |store, instance| indices()?.load(store, instance),
        |guest, store| guest.call_evaluate(store, &request),
    )?;
    Ok(answers::decision(answer))
}

pub(super) fn verdict(
    callable: &Callable<'_>,
    descriptor: &Descriptor,
    asked: &VerdictRequest<'_>,
) -> Called<Judgement> {
    let ending = requests::ending(descriptor, asked);
    let indices = || execution::GuestIndices::new(callable.pre());
    let answer = callable.run(
        calls::VERDICT,
        |store, instance| indices()?.load(store, instance),
        |guest, store| guest.call_verdict(store, &ending),
    )?;
    Ok(answers::judgement(answer))
}

pub(super) fn assess(callable: &Callable<'_>, reads: &Reads, asked: HealthRequest<'_>) -> Called<Assessment> {
    let observation = requests::observation(reads, asked);
    let indices = || health::GuestIndices::new(callable.pre());
    let answer = callable.run(
        calls::ASSESS,
        |store, instance| indices()?.load(store, instance),
        |guest, store| guest.call_assess(store, &observation),
    )?;
    Ok(answers::assessment(answer))
}

pub(super) fn map(callable: &Callable<'_>, reads: &Reads, asked: MapRequest<'_>) -> Called<Mapping> {
    let (entity, surroundings) = requests::mapping(reads, asked);
    let (name, version) = (&asked.from.name, &asked.from.version);
    let indices = || migrate::GuestIndices::new(callable.pre());
    let answer = callable.run(
        calls::MAP,
        |store, instance| indices()?.load(store, instance),
        |guest, store| guest.call_map(store, &entity, name, version, &surroundings),
    )?;
    Ok(answers::mapping(answer))
}

pub(super) fn plan(callable: &Callable<'_>, event: &Event, binding: &Binding<'_>) -> Called<Vec<Dispatch>> {
    let (event, binding) = (requests::event(event), requests::binding(binding));
    let indices = || notifier::GuestIndices::new(callable.pre());
    let answer = callable.run(
        calls::PLAN,
        |store, instance| indices()?.load(store, instance),
        |guest, store| guest.call_plan(store, &event, &binding),
    )?;
    Ok(answers::plan(answer))
}
