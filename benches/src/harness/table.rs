//! Rows of figures, and the table they are printed as.

/// What a figure should be.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
    /// A part or a fact beside a figure: nothing is asked of it.
    None,
}

impl Target {
    fn text(self) -> String {
        match self {
            Self::AtMost(limit) => format!("<= {limit}"),
            Self::AtLeast(limit) => format!(">= {limit}"),
            Self::None => String::new(),
        }
    }

    const fn verdict(self, found: f64) -> &'static str {
        match self {
            Self::AtMost(limit) if found <= limit => "yes",
            Self::AtLeast(limit) if found >= limit => "yes",
            Self::AtMost(_) | Self::AtLeast(_) => "NO",
            Self::None => "",
        }
    }
}

/// One figure.
#[derive(Clone, Debug)]
pub struct Row {
    what: String,
    ours: String,
    floor: String,
    compared: String,
    target: String,
    met: &'static str,
}

impl Row {
    /// A figure that counts by its ratio to the floor's.
    pub fn ratio(what: &str, ours: String, floor: String, ratio: f64, target: Target) -> Self {
        Self {
            what: what.to_owned(),
            ours,
            floor,
            compared: format!("{ratio:.2}"),
            target: target.text(),
            met: target.verdict(ratio),
        }
    }

    /// A figure that counts by itself.
    pub fn value(what: &str, value: f64, unit: &str, target: Target) -> Self {
        Self {
            what: what.to_owned(),
            ours: format!("{value:.2} {unit}"),
            floor: String::new(),
            compared: String::new(),
            target: target.text(),
            met: target.verdict(value),
        }
    }

    /// A fact beside the figures.
    pub fn fact(what: &str, ours: String, floor: String) -> Self {
        Self {
            what: format!("  {what}"),
            ours,
            floor,
            compared: String::new(),
            target: String::new(),
            met: "",
        }
    }

    fn cells(&self) -> [&str; 6] {
        [
            &self.what,
            &self.ours,
            &self.floor,
            &self.compared,
            &self.target,
            self.met,
        ]
    }
}

/// The rows as a Markdown table.
pub fn table(rows: &[Row]) -> String {
    const HEADER: [&str; 6] = ["figure", "ours", "floor", "ratio", "target", "met"];
    let mut widths = HEADER.map(str::len);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row.cells()) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: [&str; 6]| {
        let cells = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
    };
    let rule = widths.map(|width| "-".repeat(width));
    let mut text = line(HEADER);
    text += &line(rule.each_ref().map(String::as_str));
    rows.iter().for_each(|row| text += &line(row.cells()));
    text
}
