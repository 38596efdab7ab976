//! `show`: everything about one entity.

use runwarden_host::model::lease::kept_wish;
use runwarden_host::model::{Condition, Entity, NotifySettings};
use runwarden_host::verbs::{EntityView, Seen, health_if_open, view};
use serde_json::Value;

use super::entity::{cause, command_line, duration, settled, text_of};
use super::runtime::elsewhere;
use super::{health, processes};
use crate::context::{Context, meant};
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;
use crate::output::{Page, Report, Style, Text, long_ago, moment};

/// Show one entity: status, reason, processes, links, fields
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The entity: kind/id, an id, a prefix of one, a name, @, @failed or @self
    #[arg(value_name = "REF")]
    reference: String,
    /// Show the work specification as it is stored
    #[arg(long, help_heading = "What is shown")]
    command: bool,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden show @
  runwarden show @failed
  runwarden show 7kq2 --command
  runwarden show session/7kq2 --json | jq .reason";

/// What is shown.
pub(crate) enum Shown {
    /// The entity, what was seen of its processes where any may live, and how it is where that can be asked.
    Entity(Box<EntityView>, Option<Seen>, Option<Condition>),
    /// Its work alone.
    Work(Value),
}

/// Shows.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Shown> {
    let host = context.read()?;
    let entity = settled(context, &host, meant(&host, &args.reference)?)?;
    let mut view = view(&host, entity)?;
    if !args.command {
        let seen = processes::seen_of(&host, &view)?;
        processes::add_seen(&mut view.json, seen.as_ref());
        let condition = health_if_open(&host, &view)?;
        health::add(&mut view.json, condition.as_ref());
        return Ok(Shown::Entity(Box::new(view), seen, condition));
    }
    let reference = view.entity.reference.to_string();
    view.work.map(Shown::Work).ok_or_else(|| {
        Failure::new(
            Exit::UNKNOWN,
            "no_work",
            format!("{reference} was created without a command"),
        )
        .hint(format!("`runwarden show {reference}` shows what it has"))
    })
}

impl Report for Shown {
    fn json(&self) -> Value {
        match self {
            Self::Entity(view, ..) => view.json.clone(),
            Self::Work(work) => work.clone(),
        }
    }

    fn text(&self, page: &Page) -> Text {
        match self {
            Self::Entity(view, seen, condition) => entity_text(view, seen.as_ref(), condition.as_ref(), page),
            Self::Work(work) => work_text(work, page),
        }
    }
}

fn entity_text(view: &EntityView, seen: Option<&Seen>, condition: Option<&Condition>, page: &Page) -> Text {
    let entity = &view.entity;
    let status = Text::styled(Style::of_status(entity.terminal, entity.success), &entity.status);
    let mut text = Text::styled(Style::Strong, entity.reference.to_string())
        .and("  ")
        .with(status);
    let how = cause(entity);
    if !how.is_empty() {
        text = text.and(format!("  {how}"));
    }
    let mut lines = Lines { text, page };
    lines.add("reason", Some(entity.reason.code.clone()));
    lines.add("", entity.reason.summary.clone());
    for evidence in &entity.reason.evidence {
        lines.add("evidence", Some(told(evidence)));
    }
    let wish = kept_wish(&entity.reason).filter(|_| entity.terminal);
    lines.add("try again", wish.map(|wish| format!("its policy would, after {wish}")));
    lines.add("name", entity.name.clone());
    lines.add("command", view.work.as_ref().map(|work| command_line(&work["argv"])));
    lines.add("directory", view.work.as_ref().map(|work| text_of(&work["cwd"])));
    let created = format!(
        "{} ({})",
        moment(entity.created_at, page),
        long_ago(entity.created_at, page)
    );
    lines.add("created", Some(created));
    let ended = entity
        .structural
        .ended_at
        .map(|at| format!("{} ({})", moment(at, page), long_ago(at, page)));
    lines.add("ended", ended);
    lines.add(
        if entity.terminal { "took" } else { "for" },
        Some(duration(entity, page)),
    );
    lines.add("processes", view.json.get("runtime").and_then(runtime_line));
    for one in seen.map(processes::lines).unwrap_or_default() {
        lines.text.line(heading("").with(one));
    }
    lines.add("health", condition.map(Condition::told));
    lines.add("parents", Some(view.parents.join(", ")));
    lines.add("children", Some(view.children.join(", ")));
    lines.add("tags", Some(pairs(&view.json["tags"])));
    lines.add("fields", Some(pairs(&view.json["fields"])));
    lines.add("told", whom(entity));
    lines.add("run dir", Some(text_of(&view.json["run_dir"])));
    let digest: String = entity.policy.digest.chars().take(12).collect();
    lines.add(
        "policy",
        Some(format!("{}@{} ({digest})", entity.policy.name, entity.policy.version)),
    );
    lines.add("parameters", Some(pairs(&view.json["policy"]["parameters"])));
    lines.add("version", Some(entity.version.to_string()));
    lines.text
}

/// What is said of an entity, a name on each line.
struct Lines<'a> {
    text: Text,
    page: &'a Page,
}

impl Lines<'_> {
    /// Adds a name and what it has, if that is something.
    fn add(&mut self, name: &str, value: Option<String>) {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            let line = Text::hanging(heading(name), 11, value, self.page);
            self.text.line(line);
        }
    }
}

/// A name, as wide as the longest with its gap.
fn heading(name: &str) -> Text {
    Text::styled(Style::Dim, format!("{name:<10}")).and(" ")
}

/// What is known of its processes, on a line.
fn runtime_line(runtime: &Value) -> Option<String> {
    let state = runtime["state"].as_str()?;
    let mut words = vec![state.to_owned()];
    words.extend(elsewhere(runtime));
    if let Some(pid) = runtime["pid"].as_i64() {
        words.push(format!("pid {pid}"));
    }
    let containment = runtime["containment"].as_str().filter(|held| *held != "none");
    words.extend(containment.map(|held| format!("held by {held}")));
    words.extend(runtime["cgroup"].as_str().map(str::to_owned));
    if runtime["stop_unconfirmed"] == Value::Bool(true) {
        words.push("stop unconfirmed".to_owned());
    }
    Some(words.join(", "))
}

/// Who is told of it, by name, and that something was refused.
fn whom(entity: &Entity) -> Option<String> {
    let settings = NotifySettings::of_stored(&entity.notify)?;
    let names: Vec<String> = settings.handlers.into_iter().map(|handler| handler.name).collect();
    let refused = match settings.diagnostics.len() {
        0 => return Some(names.join(", ")),
        refused => format!(
            "{refused} refused: `runwarden notify show --ref {}`",
            entity.reference.id
        ),
    };
    let told = [names.join(", "), refused];
    Some(
        told.iter()
            .filter(|words| !words.is_empty())
            .cloned()
            .collect::<Vec<_>>()
            .join("; "),
    )
}

/// Evidence in a line: what was observed, without what was not.
fn told(evidence: &Value) -> String {
    let Some(object) = evidence.as_object() else {
        return evidence.to_string();
    };
    let says_nothing = |value: &Value| match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    let observed = object.iter().filter(|(_, value)| !says_nothing(value));
    pairs(&observed.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// `k=v, k=v` of an object.
fn pairs(object: &Value) -> String {
    let Some(object) = object.as_object() else {
        return String::new();
    };
    let shown = object.iter().map(|(name, value)| match value {
        Value::String(text) => format!("{name}={text}"),
        value => format!("{name}={value}"),
    });
    shown.collect::<Vec<_>>().join(", ")
}

fn work_text(work: &Value, page: &Page) -> Text {
    let mut text = Text::hanging(Text::new(), 2, command_line(&work["argv"]), page);
    let Some(parts) = work.as_object() else { return text };
    for (name, value) in parts.iter().filter(|(name, _)| *name != "argv") {
        let shown = match value {
            Value::Null => continue,
            Value::Array(items) if items.is_empty() => continue,
            Value::Object(members) if members.is_empty() => continue,
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        let name = Text::styled(Style::Dim, format!("{name:<14}")).and(" ");
        text.line(Text::hanging(name, 15, shown, page));
    }
    text
}
