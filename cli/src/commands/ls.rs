//! `ls`: what is alive, and what ended lately.

use std::collections::{HashMap, HashSet};

use runwarden_host::Host;
use runwarden_host::model::{Condition, DurationMs, Entity, RuntimeState, singular};
use runwarden_host::process::Living;
use runwarden_host::store::EntityQuery;
use runwarden_host::verbs::{EntityView, Seen, health as assess, views};
use serde_json::Value;

use super::entity::{cause, command_line, duration, ended_at, settled_all};
use super::runtime::elsewhere;
use super::{health, processes};
use crate::context::Context;
use crate::errors::{Failure, Outcome};
use crate::output::{Column, Page, Report, Style, Table, Text, ago, span, stems};
use crate::select::{SelectorArgs, choose};

/// How many ended entities are shown when nothing is asked for in particular.
const ENDED_MAX: usize = 20;

/// How long ago counts as lately.
const LATELY: DurationMs = DurationMs::from_ms(24 * 3_600_000);

/// List what is alive and what ended lately, newest first
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A kind (plural names are understood), or references
    #[arg(value_name = "KIND|REF")]
    words: Vec<String>,
    #[command(flatten)]
    selectors: SelectorArgs,
    /// With this status; several admit any of them
    #[arg(long = "status", value_name = "S", help_heading = "Selectors")]
    statuses: Vec<String>,
    /// Alive
    #[arg(long, conflicts_with_all = ["ended", "failed"], help_heading = "Selectors")]
    live: bool,
    /// Ended
    #[arg(long, help_heading = "Selectors")]
    ended: bool,
    /// At most so many
    #[arg(long, value_name = "N", help_heading = "Shape")]
    limit: Option<usize>,
    /// Show what is linked below what
    #[arg(long, help_heading = "Shape")]
    tree: bool,
    /// Show the live processes of each run below it
    #[arg(long, help_heading = "Shape")]
    processes: bool,
    /// Ask the policy of each how it is, and say which is the worst: healthy, idle, unresponsive, stale, orphaned, zombie
    #[arg(long, help_heading = "Shape")]
    health: bool,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden ls
  runwarden ls plays --live
  runwarden ls --failed --since yesterday
  runwarden ls --tag team=core --tree
  runwarden ls --live --tree --processes
  runwarden ls --live --health
  runwarden ls --health --json | jq 'max_by(.health.severity) | {ref, health}'
  runwarden ls --all --json | jq -r '.[] | select(.fields.exit_code == 137) | .ref'";

/// Entities, newest first.
pub(crate) struct Listing {
    views: Vec<EntityView>,
    /// What was seen of the processes of those that have any, by row, where that was asked for.
    seen: HashMap<i64, Seen>,
    /// How each is, in the order of the views, where that was asked for.
    health: Option<Vec<Option<Condition>>>,
    shape: Shape,
    /// More ended earlier than is shown.
    more: bool,
    /// Nothing in particular was asked for.
    unasked: bool,
}

/// How the listing is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    List,
    Tree,
}

/// Lists.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Listing> {
    let shape = if args.tree { Shape::Tree } else { Shape::List };
    let unasked = args.words.is_empty() && args.selectors.is_empty() && args.statuses.is_empty() && !args.ended;
    let Some(host) = context.read_if_present()? else {
        return Ok(Listing {
            views: Vec::new(),
            seen: HashMap::new(),
            health: args.health.then(Vec::new),
            shape,
            more: false,
            unasked,
        });
    };
    let (kind, references) = split(&host, &args.words)?;
    if let Some(failure) = references.failure {
        return Err(failure);
    }
    let (mut entities, more) = if references.words.is_empty() {
        found(context, &host, args, kind)?
    } else {
        (mentioned(context, &host, &references.words)?, false)
    };
    entities.truncate(args.limit.unwrap_or(usize::MAX));
    let mut views = views(&host, entities)?;
    let seen = if args.processes {
        look(&host, &mut views)?
    } else {
        HashMap::new()
    };
    let health = match args.health {
        true => Some(asked(&host, &mut views)?),
        false => None,
    };
    Ok(Listing {
        views,
        seen,
        health,
        shape,
        more,
        unasked,
    })
}

/// Looks at the processes of what is listed, and adds them to its documents.
fn look(host: &Host, views: &mut [EntityView]) -> Outcome<HashMap<i64, Seen>> {
    let mut found = HashMap::new();
    for view in views {
        let seen = processes::seen_of(host, view)?;
        processes::add_seen(&mut view.json, seen.as_ref());
        found.extend(seen.map(|seen| (view.entity.row, seen)));
    }
    Ok(found)
}

/// Asks how what is listed is, and adds the answers to its documents.
fn asked(host: &Host, views: &mut [EntityView]) -> Outcome<Vec<Option<Condition>>> {
    let conditions = assess(host, views)?;
    for (view, condition) in views.iter_mut().zip(&conditions) {
        health::add(&mut view.json, condition.as_ref());
    }
    Ok(conditions)
}

/// Words that are no kind.
struct References {
    words: Vec<String>,
    failure: Option<Failure>,
}

/// The kind among the words, and the rest.
fn split(host: &Host, words: &[String]) -> Outcome<(Option<String>, References)> {
    let mut references = References {
        words: Vec::new(),
        failure: None,
    };
    let kinds = if words.is_empty() { Vec::new() } else { host.kinds()? };
    let mut kind: Option<String> = None;
    for word in words {
        match singular(word, &kinds) {
            Some(found) if kind.as_deref().is_none_or(|kind| kind == found) => kind = Some(found.to_owned()),
            Some(found) => {
                let message = format!("one kind at a time: `{}` and `{found}`", kind.unwrap_or_default());
                return Err(Failure::usage(message).hint("`runwarden ls` lists every kind"));
            }
            None => references.words.push(word.clone()),
        }
    }
    if kind.is_some() && !references.words.is_empty() {
        let message = format!("`{}` is no kind", references.words.join("`, `"));
        references.failure = Some(Failure::usage(message).hint("give a kind or references, not both"));
    }
    Ok((kind, references))
}

fn mentioned(context: &Context, host: &Host, words: &[String]) -> Outcome<Vec<Entity>> {
    let chosen = choose(host, words, &SelectorArgs::default(), &EntityQuery::default())?;
    if let Some(mut failure) = chosen.failures.into_iter().next() {
        if failure.code == "not_found" && words.len() == 1 {
            failure
                .hints
                .insert(0, format!("the kinds are {}", host.kinds()?.join(", ")));
        }
        return Err(failure);
    }
    let mut seen = HashSet::new();
    let distinct = chosen.entities.into_iter().filter(|entity| seen.insert(entity.row));
    settled_all(context, host, distinct.collect())
}

/// What selectors choose; whether more ended earlier.
fn found(context: &Context, host: &Host, args: &Args, kind: Option<String>) -> Outcome<(Vec<Entity>, bool)> {
    let mut query = EntityQuery {
        statuses: args.statuses.clone(),
        limit: args.limit,
        ..args.selectors.query()
    };
    if kind.is_some() {
        query.except_kind = None;
        query.kind = kind;
    }
    if args.live || args.ended {
        query.terminal = Some(args.ended);
    }
    let lately = args.selectors.is_empty() && args.statuses.is_empty() && query.terminal.is_none();
    if !lately {
        let listed = settled_all(context, host, host.store().list(&query)?)?;
        let still = |entity: &Entity| !args.live || !entity.terminal;
        return Ok((listed.into_iter().filter(still).collect(), false));
    }
    let alive = host.store().list(&EntityQuery {
        terminal: Some(false),
        ..query.clone()
    })?;
    let limit = Some(ENDED_MAX.saturating_add(1));
    let ended = host.store().list(&EntityQuery {
        terminal: Some(true),
        limit,
        ..query
    })?;
    let seen: HashSet<i64> = alive.iter().map(|entity| entity.row).collect();
    let fresh: Vec<Entity> = ended.into_iter().filter(|entity| !seen.contains(&entity.row)).collect();
    let is_late = |entity: &&Entity| host.now().since(ended_at(entity)) <= LATELY;
    let late: Vec<Entity> = fresh.iter().filter(is_late).take(ENDED_MAX).cloned().collect();
    let more = late.len() < fresh.len();
    let mut entities = settled_all(context, host, alive.into_iter().chain(late).collect())?;
    entities.sort_by_key(|entity| std::cmp::Reverse(entity.row));
    Ok((entities, more))
}

const COLUMNS: [Column; 6] = [
    Column::kept("REFERENCE"),
    Column::expendable("COMMAND", 1).cut_to(12),
    Column::kept("STATUS"),
    Column::expendable("CAUSE", 3),
    Column::expendable("TOOK", 2),
    Column::kept("AGE"),
];

/// Where the column of health goes: behind the status, which a narrow page can do without then.
const HEALTH_PLACE: usize = 3;

/// Where processes are listed, a narrow page keeps what they are rather than the status of the runs they belong to.
const COLUMNS_WITH_PROCESSES: [Column; 6] = [
    COLUMNS[0],
    Column::kept("COMMAND").cut_to(12),
    Column::expendable("STATUS", 1),
    COLUMNS[3],
    COLUMNS[4],
    COLUMNS[5],
];

impl Report for Listing {
    fn json(&self) -> Value {
        self.views.iter().map(|view| view.json.clone()).collect()
    }

    fn text(&self, page: &Page) -> Text {
        if self.views.is_empty() {
            return self.empty();
        }
        let mut columns = if self.seen.is_empty() {
            COLUMNS.to_vec()
        } else {
            COLUMNS_WITH_PROCESSES.to_vec()
        };
        let levels = self.levels();
        if levels.is_some() {
            columns[HEALTH_PLACE - 1].expendable = 1;
            columns.insert(HEALTH_PLACE, Column::kept("HEALTH"));
        }
        let mut table = Table::new(&columns);
        let rows = self.rows();
        let depths: Vec<usize> = rows.iter().map(|(depth, _)| *depth).collect();
        for (stem, (_, member)) in stems(&depths).iter().zip(rows) {
            let level = levels.as_ref().map(|levels| match &member {
                Member::Entity(view) => health::level(levels.get(&view.entity.row).copied()),
                Member::Process(_) | Member::Unseen(_) => Text::new(),
            });
            let mut cells = match member {
                Member::Entity(view) => row(stem, view, page),
                Member::Process(process) => process_row(stem, process),
                Member::Unseen(why) => unseen_row(stem, why),
            };
            if let Some(level) = level {
                cells.insert(HEALTH_PLACE, level);
            }
            table.row(cells);
        }
        let mut text = table.text(page);
        if self.more {
            text.line(Text::styled(Style::Dim, "more ended earlier: runwarden ls --all"));
        }
        let conditions = self.health.as_deref().unwrap_or_default();
        for line in health::summary(&self.views, conditions, page) {
            text.line(line);
        }
        text
    }
}

/// What a row is about.
enum Member<'a> {
    Entity(&'a EntityView),
    Process(&'a Living),
    /// Why no process of the entity above is listed.
    Unseen(Text),
}

impl Listing {
    /// How each is, by row, where that was asked for.
    fn levels(&self) -> Option<HashMap<i64, &Condition>> {
        let conditions = self.health.as_ref()?.iter();
        let found = self.views.iter().zip(conditions);
        Some(
            found
                .filter_map(|(view, condition)| Some((view.entity.row, condition.as_ref()?)))
                .collect(),
        )
    }

    /// What is listed, in order, with how far below the margin each stands.
    fn rows(&self) -> Vec<(usize, Member<'_>)> {
        let entities = match self.shape {
            Shape::List => self.views.iter().map(|view| (0, view)).collect(),
            Shape::Tree => tree(&self.views),
        };
        let mut rows = Vec::new();
        for (depth, view) in entities {
            rows.push((depth, Member::Entity(view)));
            match self.seen.get(&view.entity.row) {
                Some(Seen::Processes(found)) => {
                    rows.extend(found.iter().map(|one| (depth + 1 + one.depth, Member::Process(one))));
                }
                Some(seen) => {
                    let why = processes::lines(seen).into_iter();
                    rows.extend(why.map(|why| (depth + 1, Member::Unseen(why))));
                }
                None => {}
            }
        }
        rows
    }

    fn empty(&self) -> Text {
        if !self.unasked {
            return Text::of("Nothing matches.");
        }
        let mut text = Text::of(if self.more {
            "Nothing is alive, and nothing ended lately."
        } else {
            "Nothing here yet."
        });
        text.line(Text::of("Start something:  runwarden run -- sleep 60"));
        if self.more {
            text.line(Text::of("See what ended:   runwarden ls --all"));
        }
        text
    }
}

fn row(stem: &str, view: &EntityView, page: &Page) -> Vec<Text> {
    let entity = &view.entity;
    let style = Style::of_status(entity.terminal, entity.success);
    vec![
        Text::of(stem).and_styled(Style::Strong, entity.reference.to_string()),
        Text::of(called(view)),
        Text::styled(style, &entity.status).with(lives_on(view)),
        Text::of(cause(entity)),
        Text::of(duration(entity, page)),
        Text::styled(Style::Dim, ago(entity.created_at, page)),
    ]
}

/// That processes live on although it ended, or although they were to be stopped.
fn lives_on(view: &EntityView) -> Text {
    match &view.runtime {
        Some(runtime) if runtime.is_stopped() => Text::new(),
        Some(runtime) if runtime.stop_unconfirmed => Text::styled(Style::Bad, ", stop unconfirmed"),
        Some(runtime) if runtime.state == RuntimeState::Lingering => Text::styled(Style::Bad, ", lingering"),
        Some(_) | None => Text::new(),
    }
}

fn process_row(stem: &str, process: &Living) -> Vec<Text> {
    let age = DurationMs::from_ms(i64::try_from(process.age_seconds.saturating_mul(1000)).unwrap_or(i64::MAX));
    vec![
        Text::of(stem).with(processes::numbered(process)),
        processes::words(process),
        Text::new(),
        Text::new(),
        Text::styled(Style::Dim, span(age)),
        Text::new(),
    ]
}

fn unseen_row(stem: &str, why: Text) -> Vec<Text> {
    let mut cells = vec![Text::new(); COLUMNS.len()];
    cells[0] = Text::of(stem).and("…");
    cells[1] = why;
    cells
}

/// Its name, else its command, else where it runs, else what its reason says.
fn called(view: &EntityView) -> String {
    let command = || view.work.as_ref().map(|work| command_line(&work["argv"]));
    let registered = || elsewhere(&view.json["runtime"]);
    let summary = || view.entity.reason.summary.clone();
    view.entity
        .name
        .clone()
        .or_else(command)
        .or_else(registered)
        .or_else(summary)
        .unwrap_or_default()
}

/// Every entity below its first listed parent, with how far below.
fn tree(views: &[EntityView]) -> Vec<(usize, &EntityView)> {
    let reference = |view: &EntityView| view.entity.reference.to_string();
    let listed: HashSet<String> = views.iter().map(reference).collect();
    let parent = |view: &EntityView| view.parents.iter().find(|parent| listed.contains(*parent)).cloned();
    let mut rows = Vec::new();
    let mut seen = HashSet::new();
    let roots = views.iter().filter(|view| parent(view).is_none());
    let mut open: Vec<(usize, &EntityView)> = roots.rev().map(|view| (0, view)).collect();
    while let Some((depth, view)) = open.pop() {
        if !seen.insert(view.entity.row) {
            continue;
        }
        let own = reference(view);
        let children = views.iter().filter(|child| parent(child).as_ref() == Some(&own));
        open.extend(children.rev().map(|child| (depth + 1, child)));
        rows.push((depth, view));
    }
    // A circle of links has no root: what is in it is listed all the same.
    let rest = views.iter().filter(|view| !seen.contains(&view.entity.row));
    rows.extend(rest.map(|view| (0, view)));
    rows
}
