//! What is declared to be configured: one check for policies and handlers.

use super::{Findings, is_name, limit};
use crate::model::{Parameter, coerce};

/// Judges parameters declared at `place`. How many they are was judged before.
pub(super) fn parameters(place: &str, parameters: &[Parameter], findings: &mut Findings) {
    findings.duplicates(place, "parameter", parameters.iter().map(|p| p.name.as_str()));
    for (index, parameter) in parameters.iter().enumerate() {
        findings.text(format!("{place}.{}", parameter.name), &parameter.summary);
        let place = format!("{place}[{index}]");
        if !is_name(&parameter.name, "") {
            let message = format!("`{}` is no parameter name", parameter.name);
            findings.error(format!("{place}.name"), message);
        }
        let (found, most) = (parameter.choices.len(), limit::CHOICES);
        if found > most {
            let message = format!("{found} entries, at most {most} are admitted");
            findings.error(format!("{place}.choices"), message);
        }
        for value in std::iter::once(&parameter.default).chain(&parameter.choices) {
            if let Err(problem) = coerce(&parameter.name, parameter.kind, value) {
                findings.error(&place, problem.to_string());
            }
        }
        let listed = parameter.choices.is_empty() || parameter.choices.contains(&parameter.default);
        // Null is no value: the parameter must be set, and then it is one of the choices.
        if !listed && !parameter.default.is_null() {
            findings.error(&place, "the default is not one of the choices");
        }
    }
}
