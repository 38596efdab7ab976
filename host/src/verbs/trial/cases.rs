//! The table of cases, and what becomes of each.

use super::exit::ExitCase;
use super::expect::{Came, Expected};
use super::health::HealthCase;
use super::moves::{GuardCase, MoveCase};
use super::plan::PlanCase;
use super::read::read;
use super::row::Problem;
use crate::model::{
    Described, Fields, Finding, Function, Lifecycle, Parameter, PolicyPin, Timestamp, check_given, filled,
};
use crate::policy::{Candidate, Ready, Surroundings, Trial};

/// The moment of a case that names none: fixed, so that a case comes to the same every time.
pub(super) const NOW: Timestamp = Timestamp::from_ms(1_767_225_600_000);

/// What a case file holds.
#[derive(Clone, Debug, Default)]
pub struct CaseTable {
    /// Parameters as an activation would set them, each with its line.
    pub(super) parameters: Vec<(String, serde_json::Value, usize)>,
    /// The cases, in the order in which they stand.
    pub(super) cases: Vec<Case>,
}

/// One case.
#[derive(Clone, Debug)]
pub struct Case {
    pub(super) name: Option<String>,
    pub(super) line: usize,
    pub(super) asks: Asks,
}

/// What a case asks.
#[derive(Clone, Debug)]
pub(super) enum Asks {
    Move(MoveCase),
    Exit(ExitCase),
    Guard(GuardCase),
    Health(HealthCase),
    Plan(PlanCase),
}

impl Asks {
    /// The name of its section.
    const fn section(&self) -> &'static str {
        match self {
            Self::Move(_) => "case",
            Self::Exit(_) => "exit",
            Self::Guard(_) => "guard",
            Self::Health(_) => "health",
            Self::Plan(_) => "plan",
        }
    }

    /// What it is called when it has no name.
    fn described(&self) -> String {
        match self {
            Self::Move(case) => case.situation.described(),
            Self::Guard(case) => case.situation.described(),
            Self::Exit(case) => case.described(),
            Self::Health(case) => case.described(),
            Self::Plan(case) => case.described(),
        }
    }

    fn expected(&self) -> &Expected {
        match self {
            Self::Move(case) => &case.expected,
            Self::Exit(case) => &case.expected,
            Self::Guard(case) => &case.expected,
            Self::Health(case) => &case.expected,
            Self::Plan(case) => &case.expected,
        }
    }
}

/// A case that was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// Its section: case, exit, guard, health or plan.
    pub section: &'static str,
    /// Its name, or what it asks.
    pub name: String,
    /// Where it stands, from 1.
    pub line: usize,
    /// What was to come.
    pub expected: String,
    /// What came.
    pub came: String,
    /// Whether that is the same.
    pub passed: bool,
}

impl CaseTable {
    /// Reads a case file for a component.
    ///
    /// # Errors
    /// Everything that is wrong with it, in the order of its lines.
    pub fn read(text: &str, candidate: &Candidate) -> Result<Self, Vec<Problem>> {
        let (table, mut problems) = read(text);
        problems.extend(table.parameter_problems(declared(candidate)));
        problems.sort_by_key(|problem| problem.line);
        if problems.is_empty() { Ok(table) } else { Err(problems) }
    }

    /// How many cases there are.
    pub const fn len(&self) -> usize {
        self.cases.len()
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.cases.is_empty()
    }

    /// What was set.
    pub(super) fn given(&self) -> Fields {
        let set = self.parameters.iter();
        set.map(|(name, value, _)| (name.clone(), value.clone())).collect()
    }

    fn parameter_problems(&self, declared: &[Parameter]) -> Vec<Problem> {
        let line = |name: &str| {
            let own = self.parameters.iter().find(|(set, ..)| set == name);
            own.or(self.parameters.first()).map_or(1, |(.., line)| *line)
        };
        let findings = check_given(declared, &self.given());
        let problem = |finding: Finding| Problem {
            line: line(&finding.place),
            message: format!("[parameters]: `{}` {}", finding.place, finding.message),
        };
        findings.into_iter().map(problem).collect()
    }
}

/// The parameters of a policy; those of a handler are given with each plan.
fn declared(candidate: &Candidate) -> &[Parameter] {
    match &candidate.descriptor {
        Described::Policy(descriptor) => &descriptor.parameters,
        Described::Handler(_) => &[],
    }
}

/// A policy on trial, with what its functions may see in every case.
pub(super) struct Tester<'a> {
    pub(super) ready: &'a Ready<Lifecycle>,
    pub(super) exported: &'a [Function],
    pub(super) parameters: Fields,
    pub(super) pin: PolicyPin,
}

impl<'a> Tester<'a> {
    pub(super) fn new(
        ready: &'a Ready<Lifecycle>,
        candidate: &Candidate,
        exported: &'a [Function],
        table: &CaseTable,
    ) -> Self {
        let descriptor = ready.said().descriptor();
        Self {
            ready,
            exported,
            parameters: filled(&descriptor.parameters, &table.given()),
            pin: PolicyPin {
                name: descriptor.name.clone(),
                version: descriptor.version.clone(),
                digest: candidate.digest.clone(),
                parameters: table.given(),
            },
        }
    }

    pub(super) fn lifecycle(&self) -> &Lifecycle {
        self.ready.said()
    }

    /// What functions may see beside an entity of which nothing else is told.
    pub(super) fn surroundings(&self) -> Surroundings {
        Surroundings {
            now: NOW,
            parameters: self.parameters.clone(),
            ..Surroundings::default()
        }
    }

    fn asked(&self, asks: &Asks) -> Came {
        match asks {
            Asks::Move(case) => case.asked(self),
            Asks::Guard(case) => case.asked(self),
            Asks::Exit(case) => case.asked(self),
            Asks::Health(case) => case.asked(self),
            Asks::Plan(_) => Err("a policy plans nothing: [[plan]] is for handlers".to_owned()),
        }
        .unwrap_or_else(Came::not_tried)
    }
}

/// Tries every case, in the order in which they stand. The component answers within its own limits.
pub fn try_cases(trial: &Trial, candidate: &Candidate, table: &CaseTable) -> Vec<Tried> {
    let exported = candidate.inspected.functions();
    let came: Box<dyn Fn(&Asks) -> Came> = match trial {
        Trial::Policy(ready) => {
            let tester = Tester::new(ready, candidate, &exported, table);
            Box::new(move |asks| tester.asked(asks))
        }
        Trial::Handler(ready) => Box::new(|asks| {
            let planned = match asks {
                Asks::Plan(case) => case.asked(ready, &candidate.digest),
                other => Err(format!(
                    "a handler has no statuses: [[{}]] is for policies",
                    other.section()
                )),
            };
            planned.unwrap_or_else(Came::not_tried)
        }),
    };
    let tried = |case: &Case| {
        let (expected, came) = (case.asks.expected(), came(&case.asks));
        Tried {
            section: case.asks.section(),
            name: case.name.clone().unwrap_or_else(|| case.asks.described()),
            line: case.line,
            expected: expected.told(),
            passed: expected.is_met_by(&came),
            came: came.told(),
        }
    };
    table.cases.iter().map(tried).collect()
}
