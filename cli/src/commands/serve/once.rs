//! `serve --once`: one pass of everything.

use runwarden_host::process::is_served;
use runwarden_host::verbs::{Pass, serve_once};
use serde_json::{Value, json};

use crate::context::{Context, precious};
use crate::errors::Outcome;
use crate::exit::Exit;
use crate::notify::lease_grace;
use crate::output::{Page, Report, Style, Text};

/// What came of it; none when a service does it.
pub(super) struct Once(Option<Pass>);

/// Does everything once, unless a service is up that does.
pub(super) fn execute(context: &Context) -> Outcome<Once> {
    let host = context.create()?;
    if is_served(&host.config().database_path()) {
        return Ok(Once(None));
    }
    Ok(Once(Some(serve_once(&host, &precious(), lease_grace(context, None)))))
}

impl Report for Once {
    fn json(&self) -> Value {
        let Some(pass) = &self.0 else {
            return json!({"served": true});
        };
        let problem =
            |(part, problem): &(runwarden_host::verbs::Part, String)| json!({"part": part.word(), "problem": problem});
        json!({
            "served": false,
            "repaired": pass.repaired,
            "kept": pass.kept,
            "delivered": pass.delivered.json(),
            "fired": {"submitted": pass.fired.submitted, "skipped": pass.fired.skipped},
            "pruned": pass.pruned,
            "problems": pass.problems.iter().map(problem).collect::<Vec<_>>(),
        })
    }

    fn text(&self, page: &Page) -> Text {
        let Some(pass) = &self.0 else {
            return Text::of("A service is up: it does this.");
        };
        let mut text = pass.delivered.text(page);
        let counts = [
            (pass.repaired, "repaired"),
            (pass.fired.submitted, "submitted by schedules"),
            (pass.fired.skipped, "skipped by schedules"),
            (pass.kept, "done that was due for queued work"),
            (pass.pruned, "taken away by retention"),
        ];
        for (count, words) in counts {
            if count > 0 {
                text.line(Text::own(format!("{count} {words}")));
            }
        }
        for (part, problem) in &pass.problems {
            let lead = Text::styled(Style::Bad, format!("  {} ", part.word()));
            text.line(Text::hanging(lead, 4, problem.clone(), page));
        }
        text
    }

    fn exit(&self) -> Exit {
        match &self.0 {
            Some(pass) if !pass.problems.is_empty() => Exit::NO,
            Some(pass) => pass.delivered.exit(),
            None => Exit::DONE,
        }
    }
}
