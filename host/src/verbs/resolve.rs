//! From a user's word to the entity it means.

use crate::error::Error;
use crate::host::Host;
use crate::model::{Entity, PREFIX_CHARS_MIN, singular};
use crate::store::Lookup;

/// How many candidates an ambiguous word lists.
const CANDIDATES_MAX: usize = 10;

/// The entity a word means: `kind/id`, an id, a name (the newest of that name), a unique prefix of an id, `@` (the newest
/// run), `@failed` (the newest run that ended without success), `@self` (the run that `own` names).
///
/// # Errors
/// Nothing is meant, or several are.
pub fn resolve(host: &Host, word: &str, own: Option<&str>) -> Result<Entity, Error> {
    let newest = |lookup: &Lookup| -> Result<Entity, Error> {
        host.store()
            .look_up(lookup, 1)?
            .into_iter()
            .next()
            .ok_or_else(|| host.not_found(word))
    };
    match word {
        "@" => newest(&Lookup::NewestRun),
        "@failed" => newest(&Lookup::NewestFailedRun),
        "@self" => {
            let id = own.ok_or_else(|| host.not_found("@self (this process belongs to no run)"))?;
            host.store().load(id)?.ok_or_else(|| host.not_found(word))
        }
        _ => by_name_or_id(host, word),
    }
}

fn by_name_or_id(host: &Host, word: &str) -> Result<Entity, Error> {
    let (kind, id) = match word.split_once('/') {
        Some((kind, id)) => (Some(known_kind(host, kind)?), id),
        None => (None, word),
    };
    if let Some(entity) = host
        .store()
        .load(id)?
        .filter(|e| kind.as_ref().is_none_or(|k| *k == e.reference.kind))
    {
        return Ok(entity);
    }
    if kind.is_none()
        && let Some(named) = host
            .store()
            .look_up(&Lookup::Name(word.to_owned()), 1)?
            .into_iter()
            .next()
    {
        return Ok(named);
    }
    if id.chars().count() < PREFIX_CHARS_MIN {
        return Err(host.not_found(word));
    }
    let lookup = Lookup::IdPrefix {
        kind,
        prefix: id.to_owned(),
    };
    let mut found = host.store().look_up(&lookup, CANDIDATES_MAX)?;
    match found.len() {
        0 => Err(host.not_found(word)),
        1 => Ok(found.remove(0)),
        _ => {
            let candidates = found.iter().map(|entity| entity.reference.to_string()).collect();
            Err(Error::Ambiguous {
                word: word.to_owned(),
                candidates,
            })
        }
    }
}

/// The kind a word means, plural understood. An unknown one is left as it is: nothing will be found.
pub fn known_kind(host: &Host, word: &str) -> Result<String, Error> {
    let kinds = host.kinds()?;
    Ok(singular(word, &kinds).unwrap_or(word).to_owned())
}
