//! What is wrong or doubtful about a component, told alike wherever it is told.

use runwarden_host::model::{Finding, Severity};
use serde_json::{Value, json};

use crate::errors::finding_line;
use crate::output::{Page, Style, Text};

/// The findings of a document.
pub(super) fn findings_json(findings: &[Finding]) -> Value {
    json!(findings)
}

/// A line for each finding.
pub(super) fn findings_text(findings: &[Finding], page: &Page, text: &mut Text) {
    for finding in findings {
        let word = finding.severity.word();
        let style = match finding.severity {
            Severity::Error => Style::Bad,
            Severity::Warning => Style::Notice,
            Severity::Note => Style::Dim,
        };
        let line = finding_line(finding);
        let rest = line.strip_prefix(word).unwrap_or(&line);
        text.line(Text::hanging(Text::styled(style, word), 2, rest, page));
    }
}
