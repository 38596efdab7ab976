//! What leaves the program: one writer for reports, one for everything else.
//!
//! Text for people is made of [`Text`], into which words from outside only come with their control characters escaped;
//! colours are marks in it, which the writer turns into escapes for a terminal or drops.

mod escape;
mod size;
mod style;
mod table;
mod text;
mod time;
mod tree;
mod wrap;
mod writer;

pub(crate) use size::size;
pub(crate) use style::{ColourChoice, Style};
pub(crate) use table::{Column, Table};
pub(crate) use text::Text;
pub(crate) use time::{ago, between, long_ago, moment, span};
pub(crate) use tree::stems;
pub(crate) use wrap::broken;
pub(crate) use writer::{Form, Output, compact, pretty};

use runwarden_host::model::Timestamp;

use crate::exit::Exit;

/// What a command has to say when it is done.
pub(crate) trait Report {
    /// The document of `--json`.
    fn json(&self) -> serde_json::Value;

    /// The same for people.
    fn text(&self, page: &Page) -> Text;

    /// How the command ends.
    fn exit(&self) -> Exit {
        Exit::DONE
    }
}

/// Where text for people goes.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    /// Columns; none is no limit, because it goes to a file or a pipe.
    pub(crate) width: Option<u16>,
    /// The moment that ages count from.
    pub(crate) now: Timestamp,
    /// The zone of the reader.
    pub(crate) zone: jiff::tz::TimeZone,
}
