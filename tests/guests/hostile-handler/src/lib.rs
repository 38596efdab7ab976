//! A handler that misbehaves in every way the host must survive; its mode is chosen as that of the hostile policy.

#[path = "../../hostile/src/harm.rs"]
mod harm;
#[path = "../../hostile/src/mode.rs"]
mod mode;

use runwarden_kit::table::{handler, parameter};
use runwarden_kit::{Binding, Envelope, ExtField, Fault, HandlerDescriptor, Notifier, PlannedDispatch};

pub use mode::{MARKER, Mode};

/// The handler `gong`.
#[derive(Debug)]
pub struct Hostile;

impl Notifier for Hostile {
    fn describe() -> HandlerDescriptor {
        let mut honest = handler("gong", "1.0.0", "A gong, for tests.")
            .transports(&["exec", "webhook", "file"])
            .parameters([parameter("strokes", "integer", "3", "How often.")]);
        match mode::current() {
            Mode::HandlerLoops => harm::run_forever(),
            Mode::HandlerIsNoJson => honest.config[0].default = harm::deep_json(),
            Mode::HandlerHasProblems => {
                honest.version = "one".to_owned();
                honest.transports.push("smtp".to_owned());
                honest.config.push(honest.config[0].clone());
            }
            _ => {}
        }
        honest
    }

    fn plan(envelope: Envelope, binding: Binding) -> Result<Vec<PlannedDispatch>, Fault> {
        let honest = || PlannedDispatch::new(&binding.destinations[0], envelope.json.as_bytes());
        let body = |text: &str| PlannedDispatch::new(&binding.destinations[0], text);
        Ok(match mode::current() {
            Mode::PlanLoops => harm::run_forever(),
            Mode::PlanTakesMemory => harm::take_memory(),
            Mode::PlanPanics => panic!("the gong is cracked for {}", envelope.id),
            Mode::PlanRecurses => vec![honest().deadline(harm::recurse(0).cast_signed())],
            Mode::PlanAnswersAMillion => vec![honest(); 1_000_000],
            Mode::PlanAnswersTooMany => vec![honest(); 65],
            Mode::PlanNamesAnother => vec![honest(), PlannedDispatch::new("\u{1b}[31mroot", "x")],
            Mode::PlanIsEnormous => vec![body(&harm::enormous_text())],
            Mode::PlanBodyIsEmpty => vec![honest(), body("")],
            Mode::PlanBodyIsTwoLines => vec![body("{\n}")],
            Mode::PlanDeadlineIsPast => vec![honest().deadline(envelope.occurred_at - 1)],
            Mode::PlanDeadlineIsNever => vec![honest().deadline(i64::MAX)],
            Mode::PlanRepeatsAKey => vec![honest().dedup_key("once"), honest().dedup_key("once")],
            Mode::PlanForgesAKey => vec![honest().dedup_key("../other/1")],
            Mode::PlanTakesAPlace => vec![honest().dedup_key("1"), honest()],
            Mode::PlanFaults => return Err(Fault::new("no_mallet", "nothing to strike with")),
            Mode::PlanIsCritical => vec![PlannedDispatch {
                ext: critical(),
                ..honest()
            }],
            Mode::PlanTells => {
                let strokes = binding.parameter("strokes").unwrap_or("none");
                let names = binding.destinations.join(" ");
                let Envelope {
                    event_id,
                    schema,
                    kind,
                    id,
                    ..
                } = &envelope;
                let Envelope {
                    status,
                    success,
                    reason_code,
                    occurred_at,
                    ..
                } = &envelope;
                let told = format!("{event_id} {schema} {kind}/{id} {status} {success} {reason_code} {occurred_at}");
                vec![body(&format!(r#""{}: {strokes}, {names}; {told}""#, binding.name))]
            }
            _ => vec![honest()],
        })
    }
}

fn critical() -> Vec<ExtField> {
    vec![ExtField {
        key: "from-the-future".to_owned(),
        json: "1".to_owned(),
        critical: true,
    }]
}

runwarden_kit::export!(Hostile: notifier);
