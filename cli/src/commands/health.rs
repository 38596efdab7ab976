//! Health, as `ls --health` and `show` tell it.

use runwarden_host::model::{Condition, HealthLevel};
use runwarden_host::verbs::EntityView;
use serde_json::{Value, json};

use crate::output::{Page, Style, Text};

/// Where a policy has no opinion.
const NO_OPINION: &str = "-";

/// Adds the member `health` to the document of an entity: level, place on the scale and why; null where its policy has no
/// opinion. What could not be asked has the level `unknown` and no place.
pub(super) fn add(document: &mut Value, condition: Option<&Condition>) {
    let Some(document) = document.as_object_mut() else {
        return;
    };
    let told = condition.map(|condition| {
        json!({
            "level": condition.word(),
            "severity": condition.level().map(HealthLevel::severity),
            "message": condition.message(),
        })
    });
    document.insert("health".to_owned(), told.unwrap_or(Value::Null));
}

/// The level, for a column.
pub(super) fn level(condition: Option<&Condition>) -> Text {
    condition.map_or_else(
        || Text::styled(Style::Dim, NO_OPINION),
        |condition| Text::styled(style(condition.level()), condition.word()),
    )
}

/// The worst of a listing, and what could not be asked, a line for each.
pub(super) fn summary(views: &[EntityView], conditions: &[Option<Condition>], page: &Page) -> Vec<Text> {
    let mut lines = Vec::new();
    for (view, condition) in views.iter().zip(conditions) {
        if let Some(Condition::Unknown(why)) = condition {
            let lead = Text::styled(Style::Notice, "unknown: ");
            lines.push(Text::hanging(
                lead,
                2,
                format!("{}: {why}", view.entity.reference),
                page,
            ));
        }
    }
    if let Some((place, worst)) = runwarden_host::model::worst(conditions.iter().map(Option::as_ref)) {
        let which = match worst {
            HealthLevel::Healthy => String::new(),
            _ => format!(" ({})", views[place].entity.reference),
        };
        let lead = Text::styled(Style::Dim, "worst: ");
        lines.push(lead.and_styled(style(Some(worst)), worst.word()).and(which));
    }
    lines
}

const fn style(level: Option<HealthLevel>) -> Style {
    match level {
        Some(HealthLevel::Healthy) => Style::Good,
        Some(HealthLevel::Idle) | None => Style::Notice,
        Some(HealthLevel::Unresponsive | HealthLevel::Stale | HealthLevel::Orphaned | HealthLevel::Zombie) => {
            Style::Bad
        }
    }
}
