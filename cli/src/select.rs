//! Which entities a command is about: the selectors that ls, wait and kill share.

use jiff::ZonedDateTime;
use runwarden_host::Host;
use runwarden_host::model::{DISPATCH_KIND, Entity, Timestamp};
use runwarden_host::store::EntityQuery;

use crate::context::meant;
use crate::errors::{Failure, Outcome};
use crate::parse;

/// Options that choose entities by what they are.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Selectors")]
pub(crate) struct SelectorArgs {
    /// With this tag; given several times, with all of them
    #[arg(long = "tag", value_name = "K=V", value_parser = parse::text_pair)]
    pub(crate) tags: Vec<(String, String)>,
    /// With this name
    #[arg(long, value_name = "N")]
    pub(crate) name: Option<String>,
    /// Ended without success
    #[arg(long)]
    pub(crate) failed: bool,
    /// Created since: 2h, a date, yesterday, boot, or RFC 3339
    #[arg(long, value_name = "T", value_parser = parse_since)]
    pub(crate) since: Option<Timestamp>,
    /// Everything there is
    #[arg(long)]
    pub(crate) all: bool,
}

impl SelectorArgs {
    /// Whether any of them was given.
    pub(crate) fn is_empty(&self) -> bool {
        self.tags.is_empty() && self.name.is_none() && !self.failed && self.since.is_none() && !self.all
    }

    /// The query they come to. Notices are no work: `outbox` lists and removes them, and `ls dispatches` shows them.
    pub(crate) fn query(&self) -> EntityQuery {
        EntityQuery {
            except_kind: Some(DISPATCH_KIND.to_owned()),
            terminal: self.failed.then_some(true),
            success: self.failed.then_some(false),
            tags: self.tags.clone(),
            name: self.name.clone(),
            since: self.since,
            ..EntityQuery::default()
        }
    }
}

/// Entities that were meant, in the order of their mention, and the words that mean nothing or too much.
#[derive(Debug, Default)]
pub(crate) struct Chosen {
    /// One for each mention.
    pub(crate) entities: Vec<Entity>,
    /// One for each word that means none.
    pub(crate) failures: Vec<Failure>,
}

/// Resolves words, then adds what the selectors choose.
///
/// # Errors
/// The store cannot be read; a word that means nothing is in [`Chosen::failures`].
pub(crate) fn choose(host: &Host, words: &[String], selectors: &SelectorArgs, query: &EntityQuery) -> Outcome<Chosen> {
    let mut chosen = Chosen::default();
    for word in words {
        match meant(host, word) {
            Ok(entity) => chosen.entities.push(entity),
            Err(failure) if failure.exit == crate::exit::Exit::UNKNOWN => chosen.failures.push(failure),
            Err(failure) => return Err(failure),
        }
    }
    if !selectors.is_empty() {
        chosen.entities.extend(host.store().list(query)?);
    }
    Ok(chosen)
}

/// Reads `--since` from now on this machine.
pub(crate) fn parse_since(word: &str) -> Result<Timestamp, String> {
    parse::since(word, &ZonedDateTime::now())
}
