//! `policy show`: what a policy says, in words or as a drawing.

use runwarden_host::policy::Limits;
use serde_json::{Value, json};

use super::find::{self, Subject};
use crate::context::{Context, meant};
use crate::draw;
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;
use crate::output::{Page, Report, Style, Text};

/// Show what a policy allows, in words or as a drawing
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A kind, KIND@V (1 is the newest 1.x), a digest, or the path of a file
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
    /// The policy that this entity is pinned to, with the status it has
    #[arg(
        long = "ref",
        value_name = "REF",
        conflicts_with = "policy",
        help_heading = "What is shown"
    )]
    reference: Option<String>,
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
  runwarden policy show --ref @ --as mermaid
  runwarden policy show ./my_policy.wasm";

/// A policy and the form it is asked for in.
pub(crate) struct Shown {
    subject: Subject,
    form: Form,
    current: Option<String>,
    limits: Limits,
}

/// Shows.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Shown> {
    let host = context.read_or_create()?;
    let (subject, current) = match (&args.policy, &args.reference) {
        (Some(word), _) => (find::policy(&host, word)?, None),
        (None, Some(reference)) => {
            let entity = meant(&host, reference)?;
            (find::of_entity(&host, &entity)?, Some(entity.status))
        }
        (None, None) => return Err(Failure::usage("no policy is given")),
    };
    if args.form == Form::Svg && !draw::Graph::new(&subject.lifecycle, None).is_drawable() {
        return Err(
            Failure::new(Exit::UNUSABLE, "too_large", "the graph is too large to be drawn here")
                .hint("--as dot writes it for Graphviz, --as matrix shows every pair"),
        );
    }
    Ok(Shown {
        subject,
        form: args.form,
        current,
        limits: host.policies().limits(),
    })
}

impl Shown {
    /// The drawing that is asked for; none for words and the matrix.
    fn drawing(&self) -> Option<String> {
        let graph = draw::Graph::new(&self.subject.lifecycle, self.current.as_deref());
        match self.form {
            Form::Svg => Some(draw::svg(&graph)),
            Form::Dot => Some(draw::dot(&graph)),
            Form::Mermaid => Some(draw::mermaid(&graph)),
            Form::Text | Form::Matrix => None,
        }
    }
}

impl Report for Shown {
    fn json(&self) -> Value {
        if self.form == Form::Matrix {
            return draw::matrix_json(&self.subject.lifecycle, &self.subject.digest);
        }
        if let Some(drawing) = self.drawing() {
            return json!({"digest": self.subject.digest, "drawing": drawing});
        }
        let descriptor = self.subject.lifecycle.descriptor();
        json!({
            "kind": descriptor.kind,
            "name": descriptor.name,
            "version": descriptor.version,
            "digest": self.subject.digest,
            "size_bytes": self.subject.size_bytes,
            "exports": exports(&self.subject),
            "imports": self.subject.inspected.imports,
            "wit": wit(&self.subject),
            "limits": limits_json(self.limits),
            "warnings": self.subject.warnings,
            "descriptor": descriptor,
        })
    }

    fn text(&self, page: &Page) -> Text {
        if self.form == Form::Matrix {
            return draw::matrix_text(&self.subject.lifecycle, page);
        }
        match self.drawing() {
            // A drawing's text was escaped for its own format, and for a terminal here.
            Some(drawing) => Text::lines(&drawing),
            None => self.words(page),
        }
    }
}

impl Shown {
    fn words(&self, page: &Page) -> Text {
        let descriptor = self.subject.lifecycle.descriptor();
        let label = descriptor.label();
        let name = Text::styled(Style::Strong, &label).and("  ");
        let beside = label.chars().count() + 2;
        let mut text = Text::hanging(name, beside, &descriptor.summary, page);
        let mut add = |name: &str, value: String| {
            if !value.is_empty() {
                let name = Text::styled(Style::Dim, format!("{name:<9}")).and(" ");
                text.line(Text::hanging(name, 10, value, page));
            }
        };
        add("kind", descriptor.kind.clone());
        add("digest", self.subject.digest.clone());
        add("size", format!("{} bytes", self.subject.size_bytes));
        add("exports", exports(&self.subject).join(", "));
        add("imports", self.subject.inspected.imports.join(", "));
        add("wit", wit(&self.subject).join(", "));
        add("limits", limits_words(self.limits));
        for warning in &self.subject.warnings {
            add("", warning.clone());
        }
        for (heading, lines) in [
            (
                "Statuses",
                draw::status_lines(&self.subject.lifecycle, self.current.as_deref()),
            ),
            ("Edges", draw::edge_lines(&self.subject.lifecycle)),
            (
                "Fields",
                descriptor
                    .fields
                    .iter()
                    .map(|f| format!("{}: {}", f.name, f.kind.words()))
                    .collect(),
            ),
            (
                "Reason codes",
                descriptor
                    .reason_codes
                    .iter()
                    .map(|reason| reason.code.clone())
                    .collect(),
            ),
            (
                "Parameters",
                descriptor
                    .parameters
                    .iter()
                    .map(|p| format!("{} = {}", p.name, p.default))
                    .collect(),
            ),
        ] {
            section(&mut text, heading, &lines, page);
        }
        text
    }
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

fn exports(subject: &Subject) -> Vec<String> {
    subject
        .inspected
        .exports
        .iter()
        .map(|export| format!("{}@{}", export.interface, export.version))
        .collect()
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

fn limits_json(limits: Limits) -> Value {
    json!({
        "fuel": limits.fuel,
        "wall_ms": u64::try_from(limits.wall.as_millis()).unwrap_or(u64::MAX),
        "memory_bytes": limits.memory_bytes,
        "answer_bytes": limits.answer_bytes,
        "host_call_bytes": limits.host_call_bytes,
        "stack_bytes": limits.stack_bytes,
        "component_bytes": limits.component_bytes,
        "compile": {
            "processor_ms": u64::try_from(limits.compile.processor.as_millis()).unwrap_or(u64::MAX),
            "wall_ms": u64::try_from(limits.compile.wall.as_millis()).unwrap_or(u64::MAX),
            "memory_bytes": limits.compile.memory_bytes,
        },
    })
}

fn limits_words(limits: Limits) -> String {
    let (millions, mib) = (limits.fuel / 1_000_000, limits.memory_bytes >> 20);
    let (wall, kib) = (limits.wall.as_millis(), limits.answer_bytes >> 10);
    let (seconds, compiler_mib) = (limits.compile.processor.as_secs(), limits.compile.memory_bytes >> 20);
    format!(
        "a call: {millions} million instructions, {wall} ms, {mib} MiB of memory, answers of {kib} KiB; \
         compiling it: {seconds} s of processor time, {compiler_mib} MiB"
    )
}
