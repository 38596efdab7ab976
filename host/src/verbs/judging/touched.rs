//! Which live entities a change of policy would touch.

use std::collections::BTreeMap;

use crate::error::Error;
use crate::host::Host;
use crate::model::{Group, Lifecycle, Prospect, prospect};
use crate::store::EntityQuery;

/// How many entities are read at once.
const PAGE: usize = 500;

/// Live entities of a policy that have one status, and what another policy means for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    /// The status.
    pub status: String,
    /// How many, and some of them.
    pub group: Group,
    /// What the other policy means for them.
    pub prospect: Prospect,
    /// Whether they could end under their own.
    pub could_end: bool,
}

/// The live entities that are pinned to a component, by status, as another policy would have them.
///
/// # Errors
/// The store cannot be read.
pub fn touched(host: &Host, (digest, own): (&str, &Lifecycle), other: &Lifecycle) -> Result<Vec<Touched>, Error> {
    let mut statuses: BTreeMap<String, Group> = BTreeMap::new();
    let mut query = EntityQuery {
        kind: Some(own.kind().to_owned()),
        terminal: Some(false),
        limit: Some(PAGE),
        ..EntityQuery::default()
    };
    loop {
        let page = host.store().list(&query)?;
        for entity in page.iter().filter(|entity| entity.policy.digest == digest) {
            let group = statuses.entry(entity.status.clone()).or_default();
            group.add(&entity.reference.to_string());
        }
        query.before_row = page.last().map(|entity| entity.row);
        if page.len() < PAGE {
            break;
        }
    }
    let told = statuses.into_iter().map(|(status, group)| Touched {
        prospect: prospect(other, &status),
        could_end: prospect(own, &status) == Prospect::CanEnd,
        status,
        group,
    });
    Ok(told.collect())
}
