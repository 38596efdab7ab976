//! Tables that fit the page: columns go, least important first, before a line is broken; one column may be cut.

use comfy_table::{ColumnConstraint, ContentArrangement, Row, Table as Comfy, TableStyle, Width};

use super::Page;
use super::style::Style;
use super::text::Text;

/// Between two columns.
const GAP: u16 = 2;

/// A column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    /// Its heading.
    pub(crate) heading: &'static str,
    /// The highest goes first when the page is narrow; 0 stays always.
    pub(crate) expendable: u8,
    /// Its cells are cut to what is left, but not below this many columns; 0 is never cut.
    pub(crate) cut_to: u16,
}

impl Column {
    /// A column that is never left out or cut.
    pub(crate) const fn kept(heading: &'static str) -> Self {
        Self {
            heading,
            expendable: 0,
            cut_to: 0,
        }
    }

    /// A column that is left out on a narrow page.
    pub(crate) const fn expendable(heading: &'static str, expendable: u8) -> Self {
        Self {
            heading,
            expendable,
            cut_to: 0,
        }
    }

    /// The same column, whose cells may be cut.
    pub(crate) const fn cut_to(mut self, columns: u16) -> Self {
        self.cut_to = columns;
        self
    }
}

/// Rows of text under headings.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Text>>,
}

impl Table {
    /// A table without rows.
    pub(crate) fn new(columns: &[Column]) -> Self {
        Self {
            columns: columns.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row, a cell for each column.
    pub(crate) fn row(&mut self, cells: Vec<Text>) {
        debug_assert_eq!(cells.len(), self.columns.len(), "a cell for each column");
        self.rows.push(cells);
    }

    /// The table as it fits the page.
    pub(crate) fn text(&self, page: &Page) -> Text {
        let widths = self.widths();
        let kept = self.kept(&widths, page.width);
        let mut table = Comfy::new();
        table.load_style(TableStyle::new());
        table.set_content_arrangement(ContentArrangement::Disabled);
        table.set_truncation_indicator("…");
        table.set_header(kept.iter().map(|place| Style::Dim.marked(self.columns[*place].heading)));
        for cells in &self.rows {
            let mut row = Row::from(kept.iter().map(|place| cells[*place].marked().to_owned()));
            row.max_height(1);
            table.add_row(row);
        }
        let room = self.room(&widths, &kept, page.width);
        for (column, place) in table.column_iter_mut().zip(&kept) {
            column.set_padding((0, GAP));
            if let Some(room) = room.filter(|room| self.columns[*place].cut_to > 0 && *room < widths[*place]) {
                column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(room + GAP)));
            }
        }
        let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
        Text::made(lines.join("\n"))
    }

    /// Whether the page has room for a column.
    pub(crate) fn shows(&self, heading: &str, page: &Page) -> bool {
        let kept = self.kept(&self.widths(), page.width);
        kept.iter().any(|place| self.columns[*place].heading == heading)
    }

    /// The widest cell of each column.
    fn widths(&self) -> Vec<u16> {
        let mut table = Comfy::new();
        table.set_header(self.columns.iter().map(|column| column.heading));
        for row in &self.rows {
            table.add_row(row.iter().map(|cell| cell.marked().to_owned()));
        }
        table.column_max_content_widths()
    }

    /// The columns that fit, in order.
    fn kept(&self, widths: &[u16], width: Option<u16>) -> Vec<usize> {
        let mut kept: Vec<usize> = (0..self.columns.len()).collect();
        let Some(width) = width else { return kept };
        let least = |place: &usize| match self.columns[*place].cut_to {
            0 => widths[*place],
            least => widths[*place].min(least),
        };
        loop {
            let needed: u16 = kept
                .iter()
                .map(|place| least(place).saturating_add(GAP))
                .fold(0, u16::saturating_add);
            let first = kept
                .iter()
                .max_by_key(|place| self.columns[**place].expendable)
                .copied();
            match first {
                Some(place) if needed.saturating_sub(GAP) > width && self.columns[place].expendable > 0 => {
                    kept.retain(|other| *other != place);
                }
                _ => return kept,
            }
        }
    }

    /// What is left for the column that is cut.
    fn room(&self, widths: &[u16], kept: &[usize], width: Option<u16>) -> Option<u16> {
        let others = kept.iter().filter(|place| self.columns[**place].cut_to == 0);
        let taken = others
            .map(|place| widths[*place].saturating_add(GAP))
            .fold(0, u16::saturating_add);
        Some(width?.saturating_sub(taken).saturating_sub(GAP).max(1))
    }
}
