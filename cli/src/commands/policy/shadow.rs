//! `policy shadow`: what policies say that judge beside those that decide.

use runwarden_host::model::{Reason, Timestamp};
use runwarden_host::store::{JudgedCounts, Shadow};
use runwarden_host::verbs::{ShadowReport, known_kind, shadow_report, stop_shadow};
use serde_json::{Value, json};

use super::tally;
use crate::context::{Context, operator};
use crate::errors::{Failure, Outcome};
use crate::output::{Page, Report, Style, Text, moment};

/// Show what a policy in the shadow would have decided, or end it
///
/// `policy activate NAME@V --shadow` lets a policy judge every transition of its kind beside the policy that decides. What
/// it says is kept and never enforced. It ends with --stop, or when it is put in force.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The kind [default: all that have one]
    #[arg(value_name = "KIND", required_if_eq("stop", "true"))]
    kind: Option<String>,
    /// End it
    #[arg(long, requires = "reason", help_heading = "Ending")]
    stop: bool,
    /// Why; it is audited
    #[arg(long, value_name = "T", requires = "stop", help_heading = "Ending")]
    reason: Option<String>,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden policy shadow
  runwarden policy shadow play --json | jq .groups
  runwarden policy shadow play --stop --reason 'two weeks without a difference'";

/// What they say, or which one was ended.
pub(crate) enum Told {
    /// Each of them.
    All(Vec<ShadowReport>),
    /// The one that was asked for.
    One(Box<ShadowReport>),
    /// It judges no more.
    Stopped(Shadow),
}

/// Shows or ends.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Told> {
    if let (true, Some(kind)) = (args.stop, &args.kind) {
        let host = context.create()?;
        let kind = known_kind(&host, kind)?;
        let reason = Reason::default().summary(args.reason.as_deref().unwrap_or_default());
        return Ok(Told::Stopped(stop_shadow(&host, &kind, &reason, &operator())?));
    }
    let host = context.read_or_create()?;
    let Some(word) = &args.kind else {
        return Ok(Told::All(shadow_report(&host, None)?));
    };
    let kind = known_kind(&host, word)?;
    let report = shadow_report(&host, Some(&kind))?.pop();
    let none = || {
        Failure::new(
            crate::exit::Exit::UNKNOWN,
            "no_shadow",
            format!("no policy judges {kind} beside the active one"),
        )
        .hint("`runwarden policy activate NAME@V --shadow --reason T` lets one judge")
    };
    Ok(Told::One(Box::new(report.ok_or_else(none)?)))
}

impl Report for Told {
    fn json(&self) -> Value {
        match self {
            Self::All(reports) => reports.iter().map(document).collect(),
            Self::One(report) => document(report),
            Self::Stopped(shadow) => json!({
                "kind": shadow.kind,
                "digest": shadow.digest,
                "stopped": true,
                "counts": counts(shadow.counts),
            }),
        }
    }

    fn text(&self, page: &Page) -> Text {
        match self {
            Self::All(reports) if reports.is_empty() => Text::of("No policy judges beside an active one."),
            Self::All(reports) => {
                let mut text = Text::new();
                for (place, report) in reports.iter().enumerate() {
                    if place > 0 {
                        text.line(Text::new());
                    }
                    text.line(words(report, page));
                }
                text
            }
            Self::One(report) => words(report, page),
            Self::Stopped(shadow) => Text::styled(Style::Strong, &shadow.digest[..shadow.digest.len().min(12)])
                .and(format!(" judges {} no more", shadow.kind)),
        }
    }
}

fn counts(counts: JudgedCounts) -> Value {
    json!({"same": counts.same, "different": counts.different, "not_judged": counts.unjudged})
}

fn document(report: &ShadowReport) -> Value {
    let (shadow, pin) = (&report.shadow, &report.candidate);
    json!({
        "kind": shadow.kind,
        "candidate": {"name": pin.name, "version": pin.version, "digest": pin.digest},
        "parameters": shadow.parameters,
        "since": Timestamp::to_rfc3339(shadow.at),
        "actor": shadow.actor,
        "reason": shadow.reason,
        "counts": counts(shadow.counts),
        "groups": report.tally.to_value()["groups"],
    })
}

fn words(report: &ShadowReport, page: &Page) -> Text {
    let (shadow, pin) = (&report.shadow, &report.candidate);
    let mut text = Text::styled(Style::Strong, format!("{}@{}", pin.name, pin.version)).and(format!(
        " judges {} since {}, by {}: {}",
        shadow.kind,
        moment(shadow.at, page),
        shadow.actor,
        shadow.reason
    ));
    if shadow.counts.unjudged > 0 {
        text.line(Text::of(format!("{} could not be judged", shadow.counts.unjudged)));
    }
    text.line(tally::text(&report.tally, page));
    text
}
