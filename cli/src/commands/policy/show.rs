//! `policy show`: what a policy or handler says, in words or as a drawing.

use std::sync::Arc;

use runwarden_host::Host;
use runwarden_host::model::{Entity, HandlerDescriptor, Lifecycle, Parameter};
use runwarden_host::store::HistoryQuery;
use serde_json::{Value, json};

use super::find::{self, Says, Signer, Subject};
use super::findings::{findings_json, findings_text};
use super::limits::{LimitArgs, limits_json, limits_words, raised_words};
use crate::context::{Context, meant};
use crate::draw;
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;
use crate::output::{Page, Report, Style, Text, long_ago};

/// Show what a policy allows, or a handler takes
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A kind, KIND@V (1 is the newest 1.x), a handler, a digest, or the path of a file
    #[arg(value_name = "KIND[@V]|FILE", required_unless_present = "reference")]
    policy: Option<String>,
    /// The form: text, svg, dot, mermaid, matrix
    #[arg(
        long = "as",
        value_name = "FORM",
        value_enum,
        default_value_t,
        hide_possible_values = true,
        help_heading = "What is shown"
    )]
    form: Form,
    /// The policy that this entity is pinned to, with the way that the entity took
    #[arg(
        long = "ref",
        value_name = "REF",
        conflicts_with = "policy",
        help_heading = "What is shown"
    )]
    reference: Option<String>,
    #[command(flatten)]
    limits: LimitArgs,
}

/// The form of what is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Form {
    /// Words.
    #[default]
    Text,
    /// A drawing.
    Svg,
    /// A graph for graphviz.
    Dot,
    /// A state diagram for Mermaid.
    Mermaid,
    /// What happens for every pair of statuses.
    Matrix,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden policy show play
  runwarden policy show play --as svg > play.svg
  runwarden policy show schedule_run@1 --as matrix
  runwarden policy show --ref @ --as svg > path.svg
  runwarden policy show webhook
  runwarden policy show ./my_policy.wasm";

/// A component, and what was drawn of it where a form was asked for.
pub(crate) struct Shown {
    subject: Subject,
    drawn: Drawn,
    /// The way that the entity asked about took; empty when none was.
    route: draw::Route,
}

/// What a form makes of a graph.
enum Drawn {
    Nothing,
    Drawing(String),
    Matrix(Arc<Lifecycle>),
}

/// Shows.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Shown> {
    let host = context.read_or_create()?;
    let (subject, route) = match (&args.policy, &args.reference) {
        (Some(word), _) => (
            find::component(&host, word, &args.limits.raised())?,
            draw::Route::default(),
        ),
        (None, Some(reference)) => {
            let entity = meant(&host, reference)?;
            (find::of_entity(&host, &entity)?, route(&host, &entity)?)
        }
        (None, None) => return Err(Failure::usage("no policy is given")),
    };
    let drawn = match args.form {
        Form::Text => Drawn::Nothing,
        Form::Matrix => Drawn::Matrix(Arc::clone(subject.lifecycle()?)),
        form => Drawn::Drawing(drawing(subject.lifecycle()?, form, &route)?),
    };
    Ok(Shown { subject, drawn, route })
}

/// The way that an entity took, as its history tells it.
fn route(host: &Host, entity: &Entity) -> Outcome<draw::Route> {
    let rows = host.store().history(&HistoryQuery {
        id: Some(entity.reference.id.clone()),
        ..HistoryQuery::default()
    })?;
    Ok(draw::Route::of(&rows))
}

/// The graph in a form for other programs, with the way that an entity took.
fn drawing(lifecycle: &Lifecycle, form: Form, route: &draw::Route) -> Outcome<String> {
    let graph = draw::Graph::new(lifecycle, route);
    match form {
        Form::Dot => Ok(draw::dot(&graph)),
        Form::Mermaid => Ok(draw::mermaid(&graph)),
        _ if graph.is_drawable() => Ok(draw::svg(&graph)),
        _ => Err(
            Failure::new(Exit::UNUSABLE, "too_large", "the graph is too large to be drawn here")
                .hint("--as dot writes it for Graphviz, --as matrix shows every pair"),
        ),
    }
}

impl Report for Shown {
    fn json(&self) -> Value {
        let subject = &self.subject;
        match &self.drawn {
            Drawn::Matrix(lifecycle) => return draw::matrix_json(lifecycle, &subject.digest),
            Drawn::Drawing(drawing) => {
                return json!({"digest": subject.digest, "drawing": drawing, "path": self.path_json()});
            }
            Drawn::Nothing => {}
        }
        let descriptor = match &subject.says {
            Says::Policy(lifecycle) => json!(lifecycle.descriptor()),
            Says::Handler(descriptor) => json!(**descriptor),
        };
        json!({
            "kind": subject.kind(),
            "name": subject.name(),
            "version": subject.version(),
            "digest": subject.digest,
            "signed_by": subject.signers.iter().map(Signer::json).collect::<Vec<_>>(),
            "size_bytes": subject.size_bytes,
            "exports": subject.exports(),
            "imports": subject.inspected.imports,
            "wit": wit(subject),
            "limits": limits_json(&subject.limits),
            "raised": subject.raised,
            "findings": findings_json(&subject.findings),
            "path": self.path_json(),
            "descriptor": descriptor,
        })
    }

    fn text(&self, page: &Page) -> Text {
        match &self.drawn {
            Drawn::Matrix(lifecycle) => draw::matrix_text(lifecycle, page),
            // A drawing's text was escaped for its own format, and for a terminal here.
            Drawn::Drawing(drawing) => Text::lines(drawing),
            Drawn::Nothing => self.words(page),
        }
    }
}

impl Shown {
    fn words(&self, page: &Page) -> Text {
        let label = format!("{}@{}", self.subject.name(), self.subject.version());
        let name = Text::styled(Style::Strong, &label).and("  ");
        let beside = label.chars().count() + 2;
        let mut text = Text::hanging(name, beside, self.subject.summary(), page);
        let mut add = |name: &str, value: String| {
            if !value.is_empty() {
                let name = Text::styled(Style::Dim, format!("{name:<9}")).and(" ");
                text.line(Text::hanging(name, 10, value, page));
            }
        };
        add("kind", self.subject.kind().to_owned());
        add("digest", self.subject.digest.clone());
        let signers: Vec<String> = self.subject.signers.iter().map(Signer::words).collect();
        add("signed by", signers.join(", "));
        add("size", format!("{} bytes", self.subject.size_bytes));
        add("exports", self.subject.exports().join(", "));
        add("imports", self.subject.inspected.imports.join(", "));
        add("wit", wit(&self.subject).join(", "));
        add("limits", limits_words(&self.subject.limits));
        add("raised", raised_words(&self.subject.raised));
        findings_text(&self.subject.findings, page, &mut text);
        self.path(page, &mut text);
        let sections = match &self.subject.says {
            Says::Policy(lifecycle) => of_policy(lifecycle, self.route.present()),
            Says::Handler(descriptor) => of_handler(descriptor),
        };
        for (heading, lines) in sections {
            section(&mut text, heading, &lines, page);
        }
        text
    }
}

impl Shown {
    /// How an entity came into the status of a step.
    fn way(&self, place: usize) -> &'static str {
        let (Some(before), Says::Policy(lifecycle)) = (place.checked_sub(1), &self.subject.says) else {
            return "created";
        };
        let (before, step) = (&self.route.steps[before], &self.route.steps[place]);
        match lifecycle.edge(&before.status, &step.status) {
            _ if step.carried => "carried over",
            Some(_) => "edge",
            None => "override",
        }
    }

    /// The way that the entity took: none when none was asked about.
    fn path_json(&self) -> Value {
        if self.route.steps.is_empty() {
            return Value::Null;
        }
        let step = |(place, step): (usize, &draw::Step)| {
            json!({"status": step.status, "code": step.code, "at": step.at.to_rfc3339(),
                   "actor": step.actor.to_string(), "by": self.way(place), "again": step.again})
        };
        self.route.steps.iter().enumerate().map(step).collect()
    }

    /// The same in words: the statuses in a line, then each with its reason, its age and who wrote it.
    fn path(&self, page: &Page, text: &mut Text) {
        let steps = &self.route.steps;
        if steps.is_empty() {
            return;
        }
        let statuses: Vec<&str> = steps.iter().map(|step| step.status.as_str()).collect();
        let name = Text::styled(Style::Strong, "path:").and(" ");
        text.line(Text::new());
        text.line(Text::hanging(name, 2, statuses.join(" → "), page));
        let longest = statuses
            .iter()
            .map(|status| status.chars().count())
            .max()
            .unwrap_or_default();
        for (place, step) in steps.iter().enumerate() {
            let mut line = format!("{:>2} {:<longest$}  {}", place + 1, step.status, step.code);
            line.push_str(&format!(", {}, by {}", long_ago(step.at, page), step.actor));
            if matches!(self.way(place), "override" | "carried over") {
                line.push_str(&format!(", {}", self.way(place)));
            }
            if step.again > 0 {
                let times = if step.again == 1 {
                    "once".to_owned()
                } else {
                    format!("{} times", step.again)
                };
                line.push_str(&format!(", written again {times}"));
            }
            text.line(Text::hanging(Text::of("  "), longest + 7, line, page));
        }
    }
}

/// A heading and its lines.
type Section = (&'static str, Vec<String>);

fn of_policy(lifecycle: &Lifecycle, current: Option<&str>) -> Vec<Section> {
    let descriptor = lifecycle.descriptor();
    let fields = descriptor.fields.iter();
    let codes = descriptor.reason_codes.iter();
    vec![
        ("Statuses", draw::status_lines(lifecycle, current)),
        ("Edges", draw::edge_lines(lifecycle)),
        (
            "Fields",
            fields
                .map(|field| format!("{}: {}", field.name, field.kind.words()))
                .collect(),
        ),
        ("Reason codes", codes.map(|reason| reason.code.clone()).collect()),
        ("Parameters", parameters(&descriptor.parameters)),
    ]
}

fn of_handler(descriptor: &HandlerDescriptor) -> Vec<Section> {
    vec![
        ("Transports", descriptor.transports.clone()),
        ("Parameters", parameters(&descriptor.config)),
    ]
}

fn parameters(declared: &[Parameter]) -> Vec<String> {
    let line = |parameter: &Parameter| {
        let value = match &parameter.default {
            Value::Null => "must be set".to_owned(),
            default => default.to_string(),
        };
        let choices: Vec<String> = parameter.choices.iter().map(Value::to_string).collect();
        let choices = if choices.is_empty() {
            String::new()
        } else {
            format!(" of {}", choices.join(", "))
        };
        format!("{} = {value}{choices}  {}", parameter.name, parameter.summary)
    };
    declared.iter().map(line).collect()
}

fn section(text: &mut Text, heading: &str, lines: &[String], page: &Page) {
    if lines.is_empty() {
        return;
    }
    text.line(Text::new());
    text.line(Text::styled(Style::Strong, heading));
    for line in lines {
        // A status and what it is are columns: what is broken stays in its own.
        let indent = line.rfind("  ").map_or(4, |column| column + 4);
        text.line(Text::hanging(Text::of("  "), indent, line, page));
    }
}

/// The versions of the interfaces it was built against.
fn wit(subject: &Subject) -> Vec<String> {
    let mut versions: Vec<String> = subject
        .inspected
        .exports
        .iter()
        .map(|export| export.version.clone())
        .collect();
    versions.sort();
    versions.dedup();
    versions
}
