//! Moves live entities of a kind to another policy, one audited transaction each.
//!
//! The rules are [`crate::model::migrate`]; here is read who is concerned, and counted what came of each. Whoever is killed
//! half-way leaves every entity under one policy or the other, whole; doing it again moves the rest.

use std::sync::Arc;

use crate::error::Error;
use crate::host::Host;
use crate::model::{
    Actor, Carried, Change, Entity, Invalid, Lifecycle, MapFunction, Mapped, MoveOrders, NewPolicy, NotMoved,
    PolicyPin, Reference, Structural, Way, filled, migrate as moved, no_place, way,
};
use crate::policy::MapRequest;
use crate::provenance::Trust;
use crate::store::{Applied, EntityQuery};
use crate::verbs::guarded::surroundings_under;
use crate::verbs::provenance::vouched;
use crate::verbs::transition::move_policy;

/// How many entities are read at once.
const PAGE: usize = 200;

/// How often an entity that others write meanwhile is decided again.
const LOST_RACES_MAX: usize = 8;

/// How many entities of one sort a report names.
const EXAMPLES_MAX: usize = 3;

/// What is to be moved, and where to.
#[derive(Clone, Debug)]
pub struct Migration {
    /// The policy's digest.
    pub to: String,
    /// How.
    pub orders: MoveOrders,
    /// These alone; all that live, where none are given.
    pub only: Option<Vec<Entity>>,
    /// At most so many are moved.
    pub limit: Option<usize>,
    /// Whose signatures count: entities are put under nothing that could not be put in force.
    pub trust: Trust,
    /// Who asks.
    pub actor: Actor,
    /// Whether anything is written.
    pub doing: Doing,
}

/// Whether a migration writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// It does.
    Moving,
    /// It looks, and tells what it would do.
    Looking,
}

/// What came of a migration.
#[derive(Clone, Debug, PartialEq)]
pub struct Migrated {
    /// Where to.
    pub to: PolicyPin,
    /// The kind.
    pub kind: String,
    /// Entities that were moved, by where they came from.
    pub moved: Vec<MovedGroup>,
    /// How many were there already.
    pub already_there: usize,
    /// Entities that were not moved, by what keeps them.
    pub kept: Vec<KeptGroup>,
    /// The limit was reached before everybody was looked at.
    pub is_limited: bool,
}

/// Entities that went the same way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedGroup {
    /// `name@version` of the policy that was left.
    pub from: String,
    /// The status before.
    pub previous_status: String,
    /// The status after.
    pub status: String,
    /// Who.
    pub who: Counted,
}

/// Entities that the same thing keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptGroup {
    /// `name@version` of the policy that they stay under.
    pub from: String,
    /// What keeps them.
    pub why: NotMoved,
    /// Who.
    pub who: Counted,
}

/// How many, and the first few.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// How many.
    pub count: usize,
    /// At most three of them.
    pub examples: Vec<Reference>,
}

impl Counted {
    fn add(&mut self, reference: &Reference) {
        self.count += 1;
        if self.examples.len() < EXAMPLES_MAX {
            self.examples.push(reference.clone());
        }
    }
}

impl Migrated {
    /// How many were moved.
    pub fn moved_count(&self) -> usize {
        self.moved.iter().map(|group| group.who.count).sum()
    }

    /// How many were not.
    pub fn kept_count(&self) -> usize {
        self.kept.iter().map(|group| group.who.count).sum()
    }
}

/// Moves what lives, and tells `progress` how many it has looked at.
///
/// # Errors
/// The orders make no sense for that policy, it is not installed or not vouched for, or the store failed: what was moved before stays moved.
pub fn migrate(host: &Host, asked: &Migration, mut progress: impl FnMut(usize)) -> Result<Migrated, Error> {
    let mover = Mover::new(host, asked)?;
    let mut report = Migrated {
        to: mover.pin.clone(),
        kind: mover.lifecycle.kind().to_owned(),
        moved: Vec::new(),
        already_there: 0,
        kept: Vec::new(),
        is_limited: false,
    };
    let mut looked_at = 0;
    let mut query = EntityQuery {
        kind: Some(report.kind.clone()),
        terminal: Some(false),
        limit: Some(PAGE),
        ..EntityQuery::default()
    };
    loop {
        let page = match &asked.only {
            Some(only) => only.clone(),
            None => host.store().list(&query)?,
        };
        for entity in &page {
            let is_full = asked.limit.is_some_and(|limit| report.moved_count() >= limit);
            if is_full && entity.policy.digest != mover.pin.digest {
                report.is_limited = true;
                return Ok(report);
            }
            mover.account(&mut report, entity)?;
            looked_at += 1;
            progress(looked_at);
        }
        query.before_row = page.last().map(|entity| entity.row);
        if asked.only.is_some() || page.len() < PAGE {
            return Ok(report);
        }
    }
}

/// What holds for every entity of one migration.
struct Mover<'a> {
    host: &'a Host,
    asked: &'a Migration,
    pin: PolicyPin,
    lifecycle: Arc<Lifecycle>,
    function: MapFunction,
}

/// What became of one entity.
enum Fate {
    Moved(Box<Change>),
    AlreadyThere,
    Kept(NotMoved),
    /// It ended or was removed while it was its turn: it is not concerned any more.
    Gone,
}

impl<'a> Mover<'a> {
    fn new(host: &'a Host, asked: &'a Migration) -> Result<Self, Error> {
        let selected = host.policies().installed(&asked.to)?;
        let selected = selected.ok_or_else(|| Error::UnknownPolicy { word: asked.to.clone() })?;
        let components = host.store().components()?;
        for record in components.iter().filter(|record| record.digest == asked.to) {
            vouched(host, record, &asked.trust)?;
        }
        check_orders(host, &selected.lifecycle, &asked.orders)?;
        let function = if host.policies().exports(&asked.to, "migrate")? {
            MapFunction::Exported
        } else {
            MapFunction::Absent
        };
        Ok(Self {
            host,
            asked,
            pin: selected.pin,
            lifecycle: selected.lifecycle,
            function,
        })
    }

    fn policy(&self) -> NewPolicy<'_> {
        NewPolicy {
            pin: &self.pin,
            lifecycle: &self.lifecycle,
        }
    }

    /// Moves one, and counts it.
    fn account(&self, report: &mut Migrated, entity: &Entity) -> Result<(), Error> {
        let from = format!("{}@{}", entity.policy.name, entity.policy.version);
        match self.carry(entity)? {
            Fate::Gone => {}
            Fate::AlreadyThere => report.already_there += 1,
            Fate::Kept(why) => {
                let known = report
                    .kept
                    .iter()
                    .position(|group| group.from == from && group.why == why);
                let place = known.unwrap_or_else(|| {
                    let who = Counted::default();
                    report.kept.push(KeptGroup { from, why, who });
                    report.kept.len() - 1
                });
                report.kept[place].who.add(&entity.reference);
            }
            Fate::Moved(change) => {
                let previous_status = change.row.previous_status.unwrap_or_default();
                let status = change.row.status;
                let known = report.moved.iter().position(|group| {
                    group.from == from && group.previous_status == previous_status && group.status == status
                });
                let place = known.unwrap_or_else(|| {
                    report.moved.push(MovedGroup {
                        from,
                        previous_status,
                        status,
                        who: Counted::default(),
                    });
                    report.moved.len() - 1
                });
                report.moved[place].who.add(&entity.reference);
            }
        }
        Ok(())
    }

    /// Decides and writes, again and again while others are faster.
    fn carry(&self, entity: &Entity) -> Result<Fate, Error> {
        let mut entity = entity.clone();
        let ended_before = entity.terminal;
        for _ in 0..LOST_RACES_MAX {
            if entity.policy.digest == self.pin.digest {
                return Ok(Fate::AlreadyThere);
            }
            let change = match self.decided(&entity)? {
                Ok(change) => change,
                Err(_) if entity.terminal && !ended_before => return Ok(Fate::Gone),
                Err(why) => return Ok(Fate::Kept(why)),
            };
            if self.asked.doing == Doing::Looking {
                return Ok(Fate::Moved(Box::new(change)));
            }
            match move_policy(self.host, change.clone())? {
                Applied::Written => return Ok(Fate::Moved(Box::new(change))),
                Applied::Lost(None) => return Ok(Fate::Gone),
                Applied::Lost(Some(current)) => entity = *current,
                Applied::NoRoom(_) => break,
            }
        }
        let message = format!("other writers were first {LOST_RACES_MAX} times");
        Ok(Fate::Kept(NotMoved::new("lost_race", message)))
    }

    fn decided(&self, entity: &Entity) -> Result<Result<Change, NotMoved>, Error> {
        let orders = &self.asked.orders;
        let mapped = match way(&entity.policy, &entity.status, self.policy(), orders, self.function) {
            _ if entity.terminal => Mapped::default(),
            Way::Nowhere => return Ok(Err(no_place(entity, self.policy()))),
            Way::To(status) => Mapped {
                status,
                ..Mapped::default()
            },
            Way::Ask => match self.ask(entity)? {
                Ok(mapped) => mapped,
                Err(why) => return Ok(Err(why)),
            },
        };
        let carried = self.carried(entity)?;
        let by = (&self.asked.actor, self.host.store().name(), self.host.now());
        Ok(moved(self.policy(), (entity, carried), &mapped, orders, by))
    }

    /// What the policy's own function says; one that fails leaves the entity where it is.
    fn ask(&self, entity: &Entity) -> Result<Result<Mapped, NotMoved>, Error> {
        let parameters = filled(&self.lifecycle.descriptor().parameters, &self.pin.parameters);
        let seen = surroundings_under(self.host, &self.lifecycle, entity, parameters)?;
        let request = MapRequest {
            entity,
            from: &entity.policy,
            surroundings: &seen,
        };
        let answer = self.host.policies().map(&self.pin, request);
        Ok(answer.map_err(|fault| {
            let cause = std::error::Error::source(&fault).map(|cause| format!(": {cause}"));
            NotMoved::new("function", format!("{fault}{}", cause.unwrap_or_default()))
        }))
    }

    fn carried(&self, entity: &Entity) -> Result<Carried, Error> {
        // Asked only where the answer matters: a policy without an execution rule takes nothing that runs.
        if self.lifecycle.descriptor().execution.is_some() {
            return Ok(Carried::Nothing);
        }
        let owner = std::slice::from_ref(&entity.reference);
        let runtimes = self.host.store().runtimes(Some(owner))?;
        let runs = runtimes.iter().any(|runtime| !runtime.is_stopped());
        Ok(if runs { Carried::Runtime } else { Carried::Nothing })
    }
}

/// Orders that no entity could follow are told before anything is moved.
fn check_orders(host: &Host, to: &Lifecycle, orders: &MoveOrders) -> Result<(), Error> {
    let invalid = |code, message: String, hint: &str| Err(Invalid::new(code, message, Some(hint.to_owned())).into());
    let label = to.descriptor().label();
    if let Some(name) = orders
        .dropped
        .iter()
        .find(|name| Structural::default().get(name).is_some())
    {
        return invalid(
            "field",
            format!("`{name}` is kept by the host"),
            "leave it out: it stays as it is",
        );
    }
    for mapping in &orders.statuses {
        if to.status(&mapping.to).is_none() {
            let hint = format!("`runwarden policy show {label}` lists its statuses");
            return invalid("status", format!("`{}` is no status of {label}", mapping.to), &hint);
        }
        let others = orders.statuses.iter().filter(|other| other.from == mapping.from);
        if others.count() > 1 {
            let message = format!("`{}` is mapped twice", mapping.from);
            return invalid("status", message, "give one --map for each status");
        }
        if !is_known(host, to.kind(), &mapping.from)? {
            let message = format!("no installed policy of {} has a status `{}`", to.kind(), mapping.from);
            return invalid(
                "status",
                message,
                "--map OLD=NEW: OLD is a status of the policy that is left",
            );
        }
    }
    Ok(())
}

/// Whether an installed policy of the kind has the status.
fn is_known(host: &Host, kind: &str, status: &str) -> Result<bool, Error> {
    for record in host.store().components()?.iter().filter(|record| record.kind == kind) {
        let lifecycle = host.policies().lifecycle(&record.digest)?;
        if lifecycle.is_some_and(|lifecycle| lifecycle.status(status).is_some()) {
            return Ok(true);
        }
    }
    Ok(false)
}
