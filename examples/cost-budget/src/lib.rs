//! Experiments that may cost so much and no more.
//!
//! A program reports what it is about to have spent, and the guard says no while there is still something to save. The
//! limit is a parameter, set when the policy is put in force: an experiment keeps the one it began under.

use runwarden_kit::table::{codes, edge, field};
use runwarden_kit::{Decision, Descriptor, Entity, Fault, Guard, NamedJson, Parameter, Policy, Request};
use runwarden_policy_shared::{codes as shared_codes, running};

/// The policy of the kind `experiment`.
#[derive(Debug)]
pub struct CostBudget;

/// What was spent, in cents.
const COST: &str = "cost_cents";
/// What an operator granted beside the limit, in cents.
const EXTRA: &str = "extra_cents";
/// What may be spent, in cents: a parameter.
const LIMIT: &str = "limit_cents";

impl Policy for CostBudget {
    fn describe() -> Descriptor {
        let table = running::table("experiment", "1.0.0", "A program that may spend so much and no more.")
            // A report is a write of the status that it has. Declared and guarded, each is asked about.
            .edges([edge("running", "running").guarded()])
            .fields(running::session_fields())
            .fields([
                field(COST, "integer", "What it has spent so far, in cents."),
                field(EXTRA, "integer", "What an operator granted beside the limit, in cents."),
            ])
            .codes(shared_codes::of_runs())
            .codes(codes(&[
                ("experiment.spent.reported", "Told what it has spent."),
                ("experiment.budget.raised", "An operator granted more."),
            ]))
            .measuring_ends()
            .parameters([Parameter::required(
                LIMIT,
                "integer",
                "What an experiment may spend, in cents.",
            )]);
        Descriptor {
            name: "cost_budget".to_owned(),
            ..table
        }
    }
}

impl Guard for CostBudget {
    fn evaluate(request: Request) -> Result<Decision, Fault> {
        let granted = patched(&request.patch, EXTRA)?;
        if granted.is_some() && !["operator", "admin"].contains(&request.actor.kind.as_str()) {
            let words = "a budget is raised by an operator, not by what spends it";
            return Ok(Decision::refuse("not_yours_to_raise", words));
        }
        let spent_before = kept(&request.entity, COST)?;
        let spent = patched(&request.patch, COST)?.unwrap_or(spent_before);
        if spent < spent_before {
            let words = format!("{spent_before} cents are spent already: what is spent stays spent");
            return Ok(Decision::refuse("less_than_before", &words));
        }
        let extra = match granted {
            Some(granted) => granted,
            None => kept(&request.entity, EXTRA)?,
        };
        let limit = number(LIMIT, request.surroundings.parameter(LIMIT).unwrap_or_default())?.saturating_add(extra);
        // What changes nothing about money is nobody's business, however much was spent.
        Ok(if spent == spent_before || spent <= limit {
            Decision::admit()
        } else {
            Decision::refuse("over_budget", &over_budget((spent, limit), &request.entity.id))
        })
    }
}

fn over_budget((spent, limit): (i64, i64), id: &str) -> String {
    format!(
        "{spent} cents would be {} over the budget of {limit}: end it, or let an operator set {EXTRA} of {id}",
        spent.saturating_sub(limit)
    )
}

/// A value that is to be written; none when it is not, or when it is to be forgotten.
fn patched(patch: &[NamedJson], name: &str) -> Result<Option<i64>, Fault> {
    let entry = patch.iter().find(|entry| entry.name == name && entry.json != "null");
    entry.map(|entry| number(name, &entry.json)).transpose()
}

/// A field as it is; nothing is 0.
fn kept(entity: &Entity, name: &str) -> Result<i64, Fault> {
    match entity.field(name) {
        None | Some("null") => Ok(0),
        Some(json) => number(name, json),
    }
}

fn number(name: &str, json: &str) -> Result<i64, Fault> {
    json.parse().map_err(|_| {
        Fault::new(
            "not_a_number",
            &format!("`{name}` is {json}, not a whole number of cents"),
        )
    })
}

runwarden_kit::export!(CostBudget: policy, guard);

#[cfg(test)]
mod tests {
    use runwarden_kit::check::{edge_between, problems};
    use runwarden_kit::sample;

    use super::*;

    /// What is said of a report: the code of its refusal, none when it is admitted.
    fn report(actor: &str, fields: &[(&str, &str)], patch: &[(&str, &str)]) -> Result<Option<String>, String> {
        let mut request = sample::request("running", "running", actor);
        request.entity.fields = sample::values(fields);
        request.patch = sample::values(patch);
        request.surroundings.parameters = sample::values(&[(LIMIT, "500")]);
        let decision = CostBudget::evaluate(request).map_err(|fault| fault.code)?;
        Ok((!decision.admitted).then_some(decision.code))
    }

    fn check(actor: &str, fields: &[(&str, &str)], patch: &[(&str, &str)], expected: Option<&str>) {
        let said = report(actor, fields, patch);
        assert_eq!(said, Ok(expected.map(str::to_owned)), "{fields:?} and {patch:?}");
    }

    #[test]
    fn the_table_is_sound_and_every_report_is_asked_about() {
        let table = CostBudget::describe();
        assert_eq!(problems(&table), [""; 0]);
        assert!(edge_between(&table, "running", "running").is_some_and(|edge| edge.guarded));
        assert_eq!(
            (table.kind.as_str(), table.name.as_str()),
            ("experiment", "cost_budget")
        );
    }

    #[test]
    fn money_is_spent_up_to_the_limit_and_not_a_cent_over_it() {
        check("agent:one", &[], &[(COST, "500")], None);
        check("agent:one", &[], &[(COST, "501")], Some("over_budget"));
        check("agent:one", &[(COST, "499")], &[(COST, "9000")], Some("over_budget"));
        check("agent:one", &[(COST, "null")], &[], None);
    }

    #[test]
    fn an_operator_grants_more_and_what_spends_it_does_not() {
        check("agent:one", &[], &[(EXTRA, "100")], Some("not_yours_to_raise"));
        check("operator:ann", &[], &[(EXTRA, "100")], None);
        check("agent:one", &[(EXTRA, "100")], &[(COST, "600")], None);
        check("agent:one", &[(EXTRA, "100")], &[(COST, "601")], Some("over_budget"));
    }

    #[test]
    fn what_is_spent_stays_spent_and_signs_of_life_are_always_welcome() {
        check(
            "agent:one",
            &[(COST, "300")],
            &[(COST, "200")],
            Some("less_than_before"),
        );
        check("agent:one", &[(COST, "900")], &[("num_turns", "4")], None);
        check("agent:one", &[(COST, "300")], &[(COST, "null")], None);
    }

    #[test]
    fn what_is_no_number_is_a_fault_and_so_refused() {
        assert_eq!(
            report("agent:one", &[], &[(COST, "1.5")]),
            Err("not_a_number".to_owned())
        );
    }
}
