//! Who still needs a component: what keeps it from being removed.

use crate::error::{Error, Use};
use crate::host::Host;
use crate::model::{HANDLER_KIND, NotifySettings, Timestamp};
use crate::notify::settings::{State, entry};
use crate::store::{ComponentRecord, EntityQuery};
use crate::verbs::notices::Installed;

/// How many uses are told; one is enough to keep a component.
const USES_MAX: usize = 10;

/// How many entities are read at once.
const PAGE: usize = 500;

/// How many things need a component: what [`remove`](super::remove) would name, but for being in force. Of a handler at most
/// ten are counted of each sort.
///
/// # Errors
/// The store cannot be read.
fn in_use(host: &Host, record: &ComponentRecord) -> Result<i64, Error> {
    if record.kind != HANDLER_KIND {
        return Ok(record.in_use);
    }
    Ok(i64::try_from(uses(host, record)?.len()).unwrap_or(i64::MAX))
}

/// How many live entities a component has, of all that are counted; never more than it has.
fn live(pins: &[(String, i64)], record: &ComponentRecord) -> i64 {
    let its = pins.iter().find(|(digest, _)| *digest == record.digest);
    its.map_or(0, |(_, live)| *live).min(record.in_use)
}

/// How many entities each component holds.
#[derive(Clone, Debug)]
pub struct Held {
    /// The component, `in_use` as a removal counts it.
    pub record: ComponentRecord,
    /// How many of its entities live; none of a handler, which holds no entity.
    pub live: Option<i64>,
}

/// What is installed, with how much holds each of it.
///
/// # Errors
/// The store cannot be read.
pub fn installed(host: &Host) -> Result<Vec<Held>, Error> {
    let pins = host.store().live_pins()?;
    let components = host.store().components()?.into_iter();
    let held = components.map(|mut record| {
        if record.kind == HANDLER_KIND {
            record.in_use = in_use(host, &record)?;
            return Ok(Held { record, live: None });
        }
        let live = Some(live(&pins, &record));
        Ok(Held { record, live })
    });
    held.collect()
}

/// Everything that needs a component, at most [`USES_MAX`] of each sort. Empty when nothing does.
///
/// # Errors
/// The store cannot be read.
pub(crate) fn uses(host: &Host, record: &ComponentRecord) -> Result<Vec<Use>, Error> {
    if record.kind != HANDLER_KIND {
        let in_force = record.active.then_some(Use::InForce);
        let shadow = host.store().shadow(&record.kind)?;
        let judges = shadow.filter(|shadow| shadow.digest == record.digest);
        let judges = judges.map(|shadow| Use::Shadow(shadow.kind));
        let live = live(&host.store().live_pins()?, record);
        let pinned = (record.in_use > 0).then(|| Use::Pinned {
            kind: record.kind.clone(),
            live,
            ended: record.in_use - live,
        });
        return Ok(in_force.into_iter().chain(judges).chain(pinned).collect());
    }
    let mut uses = bound(host, record)?;
    uses.extend(kept(host, record)?);
    uses.extend(owed(host, record)?);
    Ok(uses)
}

/// Bindings that mean it: the newest component that their words admit.
fn bound(host: &Host, record: &ComponentRecord) -> Result<Vec<Use>, Error> {
    let mut uses = Vec::new();
    let mut installed = Installed::new(host);
    for binding in host.store().bindings()? {
        let State::Configured(configured) = entry(&binding.settings, None).state else {
            continue;
        };
        let meant = installed.component(&configured.component)?;
        if meant.is_some_and(|(digest, _)| digest == record.digest) {
            uses.push(Use::Bound(binding.name));
        }
    }
    uses.truncate(USES_MAX);
    Ok(uses)
}

/// Entities that can still end and keep it in their settings.
fn kept(host: &Host, record: &ComponentRecord) -> Result<Vec<Use>, Error> {
    let mut uses = Vec::new();
    let mut query = EntityQuery {
        terminal: Some(false),
        limit: Some(PAGE),
        ..EntityQuery::default()
    };
    loop {
        let page = host.store().list(&query)?;
        let keeping = page.iter().filter(|entity| names(&entity.notify, record, None));
        uses.extend(keeping.map(|entity| Use::Kept(entity.reference.clone())));
        let before = page.last().map(|entity| entity.row);
        if page.len() < PAGE || uses.len() >= USES_MAX {
            uses.truncate(USES_MAX);
            return Ok(uses);
        }
        query.before_row = before;
    }
}

/// Events that it has still to plan for.
fn owed(host: &Host, record: &ComponentRecord) -> Result<Vec<Use>, Error> {
    let ever = Timestamp::from_ms(i64::MAX);
    let owed = host.store().owed(ever, usize::MAX)?;
    let through_it = owed
        .into_iter()
        .filter(|owed| names(&owed.settings, record, Some(&owed.plan.handler)));
    Ok(through_it
        .take(USES_MAX)
        .map(|owed| Use::Owed(owed.reference))
        .collect())
}

/// Whether settings bind the component, under this name where one is given.
fn names(settings: &serde_json::Value, record: &ComponentRecord, name: Option<&str>) -> bool {
    let Ok(settings) = serde_json::from_value::<NotifySettings>(settings.clone()) else {
        return false;
    };
    let mut handlers = settings.handlers.iter();
    handlers.any(|handler| handler.digest == record.digest && name.is_none_or(|name| handler.name == name))
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::unwrap_used,
        reason = "a test ends at the first thing that is not as it should be"
    )]

    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::clock::Clock;
    use crate::host::Config;
    use crate::model::{Entity, OwedPlan, Planned};
    use crate::policy::Limits;
    use crate::store::samples::{Success, ending, install, moment, new_entity};
    use crate::store::{Applied, Created, MemoryStore};

    /// A host whose store has the handlers that ship.
    fn host(home: &tempfile::TempDir) -> Host {
        let config = Config {
            home: home.path().to_owned(),
            database: None,
            limits: Limits::DEFAULT,
            clock: Clock::System,
            compiler: None,
            program: "/nonexistent".into(),
            shim: &[],
            variable: |_| None,
        };
        let host = Host::with_store(config, Arc::new(MemoryStore::named("needed01")));
        host.ensure_bundled().unwrap();
        install(host.store()).unwrap();
        host
    }

    fn handler(host: &Host, name: &str) -> ComponentRecord {
        let components = host.store().components().unwrap();
        let mut handlers = components.into_iter().filter(|record| record.kind == HANDLER_KIND);
        handlers.find(|record| record.name == name).unwrap()
    }

    /// A run that tells the file handler of its end.
    fn telling(host: &Host, id: &str) -> Entity {
        let mut new = new_entity(host.store(), "run", id);
        let bound = |name: &str, component: &str| {
            json!({"name": name, "layer": "store", "component": component, "digest": handler(host, component).digest,
                   "destinations": {}})
        };
        new.entity.notify = json!({"handlers": [bound("journal", "file"), bound("desk", "exec")]});
        match host.store().create(&new, None).unwrap() {
            Created::New { entity, .. } => *entity,
            other => panic!("{other:?}"),
        }
    }

    fn check(host: &Host, name: &str, expected: &[Use]) {
        assert_eq!(uses(host, &handler(host, name)).unwrap(), expected, "{name}");
    }

    #[test]
    fn a_handler_is_needed_until_what_it_tells_of_has_ended_and_is_told() {
        let home = tempfile::tempdir().unwrap();
        let host = host(&home);
        check(&host, "file", &[]);
        let entity = telling(&host, "r");
        let reference = entity.reference.clone();
        check(&host, "file", &[Use::Kept(reference.clone())]);
        check(&host, "webhook", &[]);
        let counted = ["file", "webhook"].map(|name| in_use(&host, &handler(&host, name)).unwrap());
        assert_eq!(counted, [1, 0]);
        let mut effects = ending(host.store(), &entity, Success::No);
        effects.change.planned.owed.push(OwedPlan {
            handler: "journal".to_owned(),
            tries: 1,
            due_at: moment(50),
            error: None,
        });
        assert!(matches!(host.store().apply(&effects).unwrap(), Applied::Written));
        check(&host, "file", &[Use::Owed(reference)]);
        check(&host, "exec", &[]);
        let owed = host.store().owed(moment(99), 9).unwrap();
        assert!(host.store().settle_owed(&owed[0], &Planned::default(), &[]).unwrap());
        check(&host, "file", &[]);
    }

    #[test]
    fn ten_uses_are_enough_to_be_told() {
        let home = tempfile::tempdir().unwrap();
        let host = host(&home);
        for number in 0..12 {
            telling(&host, &format!("r-{number}"));
        }
        assert_eq!(uses(&host, &handler(&host, "exec")).unwrap().len(), USES_MAX);
    }
}
