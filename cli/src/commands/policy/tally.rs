//! What a policy said of many things, for people: one form for `policy replay` and `policy shadow`.

use runwarden_host::model::{Answer, Difference, Group, Tally};

use crate::output::{Column, Page, Style, Table, Text};

/// How many were judged alike and otherwise, and a line for each way of differing.
pub(super) fn text(tally: &Tally, page: &Page) -> Text {
    let mut text = Text::of(format!("{} judged, {} the same", tally.judged_in_all(), tally.same));
    let differing = tally.differing();
    if differing > 0 {
        text = text.and_styled(Style::Bad, format!(", {differing} otherwise"));
    }
    for (why, group) in &tally.unjudged {
        let words = format!("{} not judged: {why} ({})", group.count, group.examples.join(", "));
        text.line(Text::hanging(Text::new(), 2, words, page));
    }
    if differing == 0 {
        return text;
    }
    text.line(Text::new());
    text.line(groups(tally, page));
    text
}

fn groups(tally: &Tally, page: &Page) -> Text {
    let mut table = Table::new(&[
        Column::kept("COUNT"),
        Column::kept("FROM -> TO"),
        Column::expendable("BY", 2),
        Column::expendable("RECORDED", 1),
        Column::kept("CANDIDATE"),
        Column::expendable("EXAMPLES", 3).cut_to(16),
    ]);
    let groups = tally.groups();
    for (difference, group) in &groups {
        table.row(vec![
            Text::of(group.count.to_string()),
            Text::of(way(difference)),
            Text::of(&difference.actor),
            Text::of(words(&difference.recorded)),
            Text::styled(Style::Strong, words(&difference.candidate)),
            Text::styled(Style::Dim, group.examples.join(", ")),
        ]);
    }
    if table.shows("RECORDED", page) {
        return table.text(page);
    }
    stacked(&groups, page)
}

/// For a narrow page: how often and from where to where on a line, and below it what was said.
fn stacked(groups: &[(&Difference, &Group)], page: &Page) -> Text {
    let mut text = Text::new();
    for (difference, group) in groups {
        text.line(Text::styled(Style::Strong, format!("{}× ", group.count)).and(way(difference)));
        let lines = [
            format!("recorded, by {}: {}", difference.actor, words(&difference.recorded)),
            format!("candidate: {}", words(&difference.candidate)),
            group.examples.join(", "),
        ];
        for line in lines {
            text.line(Text::hanging(Text::of("  "), 2, line, page));
        }
    }
    text
}

fn way(difference: &Difference) -> String {
    let from = difference.from.as_deref().unwrap_or("(new)");
    format!("{from} -> {}", difference.to)
}

fn words(answer: &Answer) -> String {
    match answer {
        Answer::Applied { status, code } => format!("{status} ({code})"),
        Answer::Rejected { code } => format!("refused: {code}"),
        Answer::Invalid { code } => format!("invalid: {code}"),
        Answer::Fault { why } => format!("fault: {why}"),
    }
}
