//! `policy migrate`: moves live entities to another policy of their kind.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use runwarden_host::Host;
use runwarden_host::model::{Entity, MoveOrders, RaisedLimits, StatusMapping};
use runwarden_host::verbs::{Counted, Doing, KeptGroup, Migrated, Migration, MovedGroup, known_kind, migrate};
use serde_json::{Value, json};

use super::find;
use super::offer::trusted;
use crate::context::{Context, meant, operator};
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;
use crate::output::{Form, Page, Report, Style, Text};
use crate::parse;

/// Move live entities to another policy of their kind
///
/// Each is moved by itself, in one audited commit; what has ended stays under its policy. Where a status goes is said by
/// --map, else by the policy that is moved to; one that has no place there stays. Processes, leases, places in queues and
/// notices are not touched: an end that comes later is judged by the new policy. Stopped half-way, it is run again.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The kind
    kind: String,
    /// These alone; all that live when none are given
    #[arg(value_name = "REF")]
    references: Vec<String>,
    /// The policy they are moved to: a version (1 is the newest 1.x), NAME@V, or a digest
    #[arg(long, value_name = "V", help_heading = "Where to")]
    to: String,
    /// Where a status goes; before what the policy says
    #[arg(long = "map", value_name = "OLD=NEW", value_parser = parse::text_pair, help_heading = "Where to")]
    maps: Vec<(String, String)>,
    /// Give up a field that the policy has not; history keeps its value
    #[arg(long = "drop", value_name = "FIELD", help_heading = "Where to")]
    dropped: Vec<String>,
    /// Show what would be moved, and move nothing
    #[arg(long, help_heading = "How")]
    dry_run: bool,
    /// Why; it is kept with the history
    #[arg(long, value_name = "T", help_heading = "How")]
    reason: Option<String>,
    /// Move at most so many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "How")]
    limit: Option<u64>,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden policy migrate schedule_run --to 2 --dry-run
  runwarden policy migrate schedule_run --to 2 --reason 'two stages from now on'
  runwarden policy migrate schedule_run --to 1 --map supervisor_unknown=running
  runwarden policy migrate play --to strict_play@1.2 opening-night

EXIT CODES
  0 all were moved, or were there   1 something was not moved, and why is said";

/// What was moved, or would be.
pub(crate) struct Told {
    report: Migrated,
    doing: Doing,
}

/// Moves.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Told> {
    let host = context.create()?;
    let kind = known_kind(&host, &args.kind)?;
    let words = if args.to.contains('@') {
        args.to.clone()
    } else {
        format!("{kind}@{}", args.to)
    };
    let subject = find::component(&host, &words, &RaisedLimits::default())?;
    if subject.kind() != kind {
        let message = format!(
            "{}@{} is for {}, not for {kind}",
            subject.name(),
            subject.version(),
            subject.kind()
        );
        return Err(Failure::usage(message).hint("`runwarden policy ls` shows the policies of each kind"));
    }
    let doing = if args.dry_run { Doing::Looking } else { Doing::Moving };
    let asked = Migration {
        to: subject.digest,
        orders: MoveOrders {
            statuses: args.maps.iter().map(mapping).collect(),
            dropped: args.dropped.clone(),
            reason: args.reason.clone(),
        },
        only: only(&host, &kind, &args.references)?,
        limit: args.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)),
        trust: trusted(context)?,
        actor: operator(),
        doing,
    };
    let mut progress = Progress::new(context);
    let report = migrate(&host, &asked, |looked_at| progress.show(looked_at));
    progress.clear();
    Ok(Told { report: report?, doing })
}

fn mapping((from, to): &(String, String)) -> StatusMapping {
    StatusMapping {
        from: from.clone(),
        to: to.clone(),
    }
}

/// The entities that were named, each once.
fn only(host: &Host, kind: &str, references: &[String]) -> Outcome<Option<Vec<Entity>>> {
    if references.is_empty() {
        return Ok(None);
    }
    let mut found: Vec<Entity> = Vec::new();
    for word in references {
        let entity = meant(host, word)?;
        if entity.reference.kind != kind {
            let message = format!("{} is no {kind}", entity.reference);
            return Err(Failure::usage(message).hint("one kind is moved at a time"));
        }
        if found.iter().all(|known| known.row != entity.row) {
            found.push(entity);
        }
    }
    Ok(Some(found))
}

/// One line on a terminal that tells how far it is, once it takes long.
struct Progress {
    is_shown: bool,
    has_written: bool,
    next: Instant,
}

impl Progress {
    /// Between two looks at the line.
    const EVERY: Duration = Duration::from_millis(200);

    fn new(context: &Context) -> Self {
        Self {
            is_shown: std::io::stderr().is_terminal() && context.output.form() == Form::Text,
            has_written: false,
            next: Instant::now() + Self::EVERY,
        }
    }

    fn show(&mut self, looked_at: usize) {
        if !self.is_shown || Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + Self::EVERY;
        self.has_written = true;
        let _ = write!(std::io::stderr(), "\r{looked_at} looked at");
    }

    fn clear(&self) {
        if self.has_written {
            let _ = write!(std::io::stderr(), "\r\u{1b}[K");
        }
    }
}

impl Report for Told {
    fn json(&self) -> Value {
        let report = &self.report;
        let moved: Vec<Value> = report.moved.iter().map(moved_json).collect();
        let kept: Vec<Value> = report.kept.iter().map(kept_json).collect();
        json!({
            "kind": report.kind,
            "to": {"name": report.to.name, "version": report.to.version, "digest": report.to.digest},
            "dry_run": self.doing == Doing::Looking,
            "moved": {"count": report.moved_count(), "groups": moved},
            "already_there": report.already_there,
            "not_moved": {"count": report.kept_count(), "groups": kept},
            "limited": report.is_limited,
        })
    }

    fn text(&self, page: &Page) -> Text {
        let report = &self.report;
        let label = format!("{}@{}", report.to.name, report.to.version);
        let word = match self.doing {
            Doing::Moving => "moved",
            Doing::Looking => "would be moved",
        };
        let mut text = Text::new();
        for group in &report.moved {
            let way = if group.previous_status == group.status {
                group.status.clone()
            } else {
                format!("{} → {}", group.previous_status, group.status)
            };
            let words = format!(
                "{} from {} ({way}): {}",
                group.who.count,
                group.from,
                examples(&group.who)
            );
            let word = Text::styled(Style::Good, format!("{word}:")).and(" ");
            text.line(Text::hanging(word, 2, words, page));
        }
        for group in &report.kept {
            let words = format!(
                "{} of {}: {}: {}",
                group.who.count,
                group.from,
                group.why.message,
                examples(&group.who)
            );
            let word = Text::styled(Style::Bad, "not moved:").and(" ");
            text.line(Text::hanging(word, 2, words, page));
        }
        let total = format!(
            "{label}: {} {word}, {} there before, {} not moved.",
            report.moved_count(),
            report.already_there,
            report.kept_count()
        );
        text.line(Text::hanging(Text::new(), 2, total, page));
        if report.is_limited {
            text.line(Text::styled(
                Style::Notice,
                "The limit was reached: run it again for the rest.",
            ));
        }
        if let Some(hint) = self.hint() {
            text.line(Text::hanging(
                Text::styled(Style::Strong, "hint:").and(" "),
                6,
                hint,
                page,
            ));
        }
        text
    }

    fn exit(&self) -> Exit {
        if self.report.kept.is_empty() {
            Exit::DONE
        } else {
            Exit::NO
        }
    }
}

impl Told {
    /// What to type for what was not moved.
    fn hint(&self) -> Option<&'static str> {
        let code = |wanted: &str| self.report.kept.iter().any(|group| group.why.code == wanted);
        if code("no_place") {
            return Some("--map OLD=NEW says where a status goes");
        }
        code("field").then_some("--drop FIELD gives a field up; history keeps its value")
    }
}

fn moved_json(group: &MovedGroup) -> Value {
    json!({
        "from": group.from,
        "previous_status": group.previous_status,
        "status": group.status,
        "count": group.who.count,
        "examples": names(&group.who),
    })
}

fn kept_json(group: &KeptGroup) -> Value {
    json!({
        "from": group.from,
        "code": group.why.code,
        "message": group.why.message,
        "count": group.who.count,
        "examples": names(&group.who),
    })
}

fn names(who: &Counted) -> Vec<String> {
    who.examples.iter().map(ToString::to_string).collect()
}

/// The first few, and that there are more.
fn examples(who: &Counted) -> String {
    let more = if who.count > who.examples.len() { ", …" } else { "" };
    format!("{}{more}", names(who).join(", "))
}
