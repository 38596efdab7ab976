//! The sweep of `kill --all-stale`: which entities end because everything of them is positively gone. Pure, so that the
//! plan that is shown is the plan that is carried out.
//!
//! Nothing alive, nothing young and nothing unknown is ended. What has no processes of its own follows from what is
//! linked below it, deepest first: an entity that ends in this sweep counts as ended for what is above.

use super::{DurationMs, Entity, Standing, Timestamp};

/// How old an entity has to be before the sweep ends it.
pub const STALE_AFTER: DurationMs = DurationMs::from_ms(3_600_000);

/// One entity that has not ended and could be killed.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The entity.
    pub entity: Entity,
    /// The status in which its kind is run; none for a kind that is not run.
    pub runs_in: Option<String>,
    /// What is known of its processes; none if none was ever recorded.
    pub standing: Option<Standing>,
    /// What is linked directly below it.
    pub below: Vec<Below>,
}

/// Something linked below a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Below {
    /// It has ended.
    Ended,
    /// It is a candidate itself, at this place.
    Candidate(usize),
    /// It lives and cannot be killed.
    Living,
}

/// What the sweep makes of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StaleVerdict {
    /// It ends.
    End(String),
    /// It stays.
    Keep(String),
    /// Nobody can tell from here; it stays.
    Undetermined(String),
}

impl StaleVerdict {
    /// The word in reports.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::End(_) => "end",
            Self::Keep(_) => "keep",
            Self::Undetermined(_) => "undetermined",
        }
    }

    /// Why, in words.
    pub fn reason(&self) -> &str {
        match self {
            Self::End(why) | Self::Keep(why) | Self::Undetermined(why) => why,
        }
    }
}

/// The verdicts, in the order of the candidates.
pub fn plan_stale(candidates: &[Candidate], older_than: DurationMs, now: Timestamp) -> Vec<StaleVerdict> {
    let mut verdicts: Vec<Option<StaleVerdict>> = candidates
        .iter()
        .map(|candidate| by_itself(candidate, older_than, now))
        .collect();
    // As deep as links can go; a circle of links never resolves and is left.
    for _ in 0..candidates.len() {
        let open: Vec<usize> = (0..candidates.len())
            .filter(|place| verdicts[*place].is_none())
            .collect();
        let found: Vec<_> = open
            .iter()
            .filter_map(|place| Some((*place, by_children(&candidates[*place], &verdicts)?)))
            .collect();
        if found.is_empty() {
            break;
        }
        found
            .into_iter()
            .for_each(|(place, verdict)| verdicts[place] = Some(verdict));
    }
    let circle = || StaleVerdict::Undetermined("it is linked below itself".to_owned());
    verdicts
        .into_iter()
        .map(|verdict| verdict.unwrap_or_else(circle))
        .collect()
}

/// What follows without a look at others; none where it follows from those below.
fn by_itself(candidate: &Candidate, older_than: DurationMs, now: Timestamp) -> Option<StaleVerdict> {
    let age = now.since(candidate.entity.created_at);
    if age.as_ms() < older_than.as_ms() {
        return Some(StaleVerdict::Keep("it is younger than the threshold".to_owned()));
    }
    let keep = |why: &str| Some(StaleVerdict::Keep(why.to_owned()));
    match (&candidate.runs_in, &candidate.standing) {
        (_, Some(Standing::Gone(seen))) => Some(StaleVerdict::End(format!("its processes are gone: {}", seen.word()))),
        (_, Some(Standing::Held | Standing::Unheld)) => keep("its processes are alive"),
        (_, Some(Standing::Starting)) => keep("it is being started"),
        (_, Some(Standing::Unjudged(why))) => Some(StaleVerdict::Undetermined(why.message.clone())),
        (Some(status), Some(Standing::Nothing) | None) if *status != candidate.entity.status => {
            keep("it has no process while it waits")
        }
        (Some(_), Some(Standing::Nothing) | None) => Some(StaleVerdict::Undetermined(
            "no process of it was ever recorded".to_owned(),
        )),
        (None, Some(Standing::Nothing) | None) => None,
    }
}

fn by_children(candidate: &Candidate, verdicts: &[Option<StaleVerdict>]) -> Option<StaleVerdict> {
    if candidate.below.is_empty() {
        let why = "nothing is linked below it: nothing shows whether it goes on";
        return Some(StaleVerdict::Undetermined(why.to_owned()));
    }
    let mut living = false;
    for below in &candidate.below {
        match below {
            Below::Ended => {}
            Below::Living => living = true,
            Below::Candidate(place) => match verdicts.get(*place)? {
                Some(StaleVerdict::End(_)) => {}
                Some(StaleVerdict::Keep(_) | StaleVerdict::Undetermined(_)) => living = true,
                None => return None,
            },
        }
    }
    Some(if living {
        StaleVerdict::Keep("something linked below it has not ended".to_owned())
    } else {
        StaleVerdict::End("everything linked below it has ended".to_owned())
    })
}

#[cfg(test)]
mod tests;
