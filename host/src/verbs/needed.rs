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

/// Everything that needs a component, at most [`USES_MAX`] of each sort. Empty when nothing does.
///
/// # Errors
/// The store cannot be read.
pub(crate) fn uses(host: &Host, record: &ComponentRecord) -> Result<Vec<Use>, Error> {
    if record.kind != HANDLER_KIND {
        let in_force = record.active.then_some(Use::InForce);
        let pinned = (record.in_use > 0).then_some(Use::Pinned(record.in_use));
        return Ok(in_force.into_iter().chain(pinned).collect());
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
