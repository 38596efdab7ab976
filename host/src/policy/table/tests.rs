//! Tables are built and asked what they are: the component model's own reader is the judge of their layout.

use std::time::Duration;

use proptest::prelude::{ProptestConfig, any, prop_assert_eq, proptest};
use serde_json::{Value, json};

use super::component;
use super::records::every_record;
use crate::model::{
    Cascade, DeliveryRule, Described, Descriptor, DurationMs, Edge, ExecutionRule, Extension, Field, FieldKind,
    HealthThreshold, KillRow, LeaseRule, Migration, Outcome, Parameter, Reads, ReasonCode, RetrySchedule, SameStatus,
    Status, StatusMapping, VerdictRow, sha256_hex,
};
use crate::policy::calls::Callable;
use crate::policy::instance::link;
use crate::policy::{InstallError, Limits, compile_here, prepare};

/// Makes values of every type out of bytes; where they are used up, the smallest.
struct Source(std::vec::IntoIter<u8>);

impl Source {
    fn byte(&mut self) -> u8 {
        self.0.next().unwrap_or(0)
    }

    fn draw<T: Drawn>(&mut self) -> T {
        T::draw(self)
    }
}

trait Drawn {
    fn draw(source: &mut Source) -> Self;
}

macro_rules! drawn {
    ($($record:ty { $($field:ident),+ $(,)? })+) => {
        $(impl Drawn for $record {
            fn draw(source: &mut Source) -> Self {
                Self { $($field: source.draw()),+ }
            }
        })+
    };
}

every_record!(drawn);

/// What is one of a few values.
macro_rules! chosen {
    ($($type:ty: $choices:expr;)+) => {
        $(impl Drawn for $type {
            fn draw(source: &mut Source) -> Self {
                let choices = $choices;
                let place = usize::from(source.byte()) % choices.len();
                choices[place].clone()
            }
        })+
    };
}

chosen! {
    bool: [false, true];
    i64: [0, 1, -1, 258, i64::MIN, i64::MAX];
    SameStatus: [SameStatus::Append, SameStatus::Reject];
    Cascade: [Cascade::Recursive, Cascade::Always];
    FieldKind: [FieldKind::Integer, FieldKind::Number, FieldKind::Text, FieldKind::Timestamp, FieldKind::Json];
    Value: [Value::Null, json!(true), json!(-7), json!("\u{0}é"), json!([1, {"a": "b"}])];
}

impl Drawn for DurationMs {
    fn draw(source: &mut Source) -> Self {
        Self::from_ms(source.draw())
    }
}

impl Drawn for String {
    fn draw(source: &mut Source) -> Self {
        let letters = ["a", "running", "é", "\u{0}", "🦀", ".", "\n"];
        let count = source.byte() % 4;
        let letter = |_| letters[usize::from(source.byte()) % letters.len()];
        (0..count).map(letter).collect()
    }
}

impl<T: Drawn> Drawn for Vec<T> {
    fn draw(source: &mut Source) -> Self {
        let count = source.byte() % 4;
        (0..count).map(|_| source.draw()).collect()
    }
}

impl<T: Drawn> Drawn for Option<T> {
    fn draw(source: &mut Source) -> Self {
        let present: bool = source.draw();
        present.then(|| source.draw())
    }
}

impl<A: Drawn, B: Drawn> Drawn for (A, B) {
    fn draw(source: &mut Source) -> Self {
        (source.draw(), source.draw())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_table_describes_what_it_was_made_of(bytes in proptest::collection::vec(any::<u8>(), 0..6_000)) {
        let descriptor: Descriptor = Source(bytes.into_iter()).draw();
        prop_assert_eq!(described(&component(&descriptor)), descriptor);
    }
}

/// What a component describes, unjudged.
fn described(bytes: &[u8]) -> Descriptor {
    let code: Result<_, InstallError> = compile_here("table", bytes);
    let component = code.expect("it compiles").load().expect("it loads");
    let pre = link(&component).expect("it imports nothing");
    let limits = Limits {
        wall: Duration::from_secs(60),
        ..Limits::DEFAULT
    };
    let described = Callable::new("table", &pre, limits).describe();
    described.expect("it answers with words that are known")
}

#[test]
fn a_table_passes_the_checks_that_its_descriptor_passes() {
    for bundled in runwarden_bundled::POLICIES {
        let descriptor: Descriptor = serde_json::from_str(bundled.descriptor).expect("it ships");
        let bytes = component(&descriptor);
        let candidate = prepare(&bytes, Limits::DEFAULT, compile_here).expect("it is a policy");
        assert_eq!(candidate.descriptor, Described::Policy(Box::new(descriptor)));
        assert_eq!(
            candidate.inspected.imports,
            ["runwarden:types/types@0.1.0"],
            "types alone"
        );
        assert!(
            candidate.describe_fuel < 100,
            "it has nothing to compute: {}",
            candidate.describe_fuel
        );
        assert!(bytes.len() < 24 << 10, "{} has {} bytes", bundled.name, bytes.len());
    }
}

#[test]
fn the_same_descriptor_gives_the_same_component() {
    let descriptor =
        || -> Descriptor { serde_json::from_str(runwarden_bundled::POLICIES[0].descriptor).expect("it ships") };
    let digest = |descriptor: &Descriptor| sha256_hex(&component(descriptor));
    assert_eq!(digest(&descriptor()), digest(&descriptor()));
    let other = Descriptor {
        version: "9.0.0".to_owned(),
        ..descriptor()
    };
    assert_ne!(digest(&descriptor()), digest(&other));
}
