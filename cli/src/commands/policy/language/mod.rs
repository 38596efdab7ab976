//! The languages that policies and handlers are written in: how a project of each begins, and how it becomes a component.
//!
//! Each language has a file: what its projects are known by, the templates of a new one, and what builds one. What is
//! common to them is in [`super::new`] and [`super::build`].

mod c;
mod javascript;
mod project;
mod python;
mod rust;
mod toml;
mod tool;

use std::path::Path;

use runwarden_host::model::{Descriptor, RaisedLimits};

use super::template::Source;
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;
use crate::output::Output;

/// A language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Language {
    /// A table, without a compiler.
    Toml,
    /// Rust.
    Rust,
    /// JavaScript.
    #[value(name = "js")]
    JavaScript,
    /// Python.
    Python,
    /// C.
    C,
}

/// What a component is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A policy.
    Policy,
    /// A handler.
    Handler,
}

/// What became of a project.
pub(super) struct Built {
    /// The component.
    pub(super) component: Vec<u8>,
    /// What it was made of, where that is a table.
    pub(super) table: Option<Table>,
}

/// A table that a component was made of.
pub(super) struct Table {
    /// What the component must describe.
    pub(super) descriptor: Descriptor,
    /// What is doubtful about it, each with its place in the text.
    pub(super) warnings: Vec<String>,
}

impl Language {
    /// Every language.
    const ALL: [Self; 5] = [Self::Toml, Self::Rust, Self::JavaScript, Self::Python, Self::C];

    /// The files by which a project of this language is known: one of them is enough.
    const fn marks(self) -> &'static [&'static str] {
        match self {
            Self::Toml => &[toml::MARK],
            Self::Rust => &[rust::MARK],
            Self::JavaScript => &[javascript::MARK],
            Self::Python => &python::MARKS,
            Self::C => &c::MARKS,
        }
    }

    /// What a new project is made of.
    ///
    /// # Errors
    /// Nothing of this kind is written in this language.
    pub(super) fn sources(self, part: Part) -> Outcome<&'static [Source]> {
        match (self, part) {
            (Self::Toml, Part::Policy) => Ok(toml::POLICY),
            (Self::Toml, Part::Handler) => Err(toml::no_handler()),
            (Self::Rust, Part::Policy) => Ok(rust::POLICY),
            (Self::Rust, Part::Handler) => Ok(rust::HANDLER),
            (Self::JavaScript, Part::Policy) => Ok(javascript::POLICY),
            (Self::JavaScript, Part::Handler) => Ok(javascript::HANDLER),
            (Self::Python, Part::Policy) => Ok(python::POLICY),
            (Self::Python, Part::Handler) => Ok(python::HANDLER),
            (Self::C, Part::Policy) => Ok(c::POLICY),
            (Self::C, Part::Handler) => Ok(c::HANDLER),
        }
    }

    /// Builds the project in a directory. What a tool of the language says goes to standard error as it comes, and so does
    /// what is started, where it is more than one.
    pub(super) fn build(self, project: &Path, output: &Output) -> Outcome<Built> {
        match self {
            Self::Toml => toml::build(project),
            Self::Rust => rust::build(project),
            Self::JavaScript => javascript::build(project, output),
            Self::Python => python::build(project, output),
            Self::C => c::build(project, output),
        }
    }

    /// Limits that components of this language do not keep, and how far they go beyond.
    pub(super) fn raised(self) -> RaisedLimits {
        match self {
            Self::Python => python::raised(),
            Self::Toml | Self::Rust | Self::JavaScript | Self::C => RaisedLimits::default(),
        }
    }

    /// The language of the project in a directory.
    ///
    /// # Errors
    /// What lies there is of none, or of several.
    pub(super) fn of(project: &Path) -> Outcome<Self> {
        let is_there = |mark: &&&str| project.join(mark).is_file();
        let marks = |languages: &[Self]| {
            languages
                .iter()
                .flat_map(|language| language.marks())
                .collect::<Vec<_>>()
        };
        let found: Vec<Self> = Self::ALL
            .into_iter()
            .filter(|language| language.marks().iter().any(|mark| is_there(&mark)))
            .collect();
        match found.as_slice() {
            [language] => Ok(*language),
            [] => Err(not_one(format!(
                "{} holds no policy or handler: one of {} is there",
                project.display(),
                marks(&Self::ALL).into_iter().copied().collect::<Vec<_>>().join(", ")
            ))
            .hint("`runwarden policy new NAME` begins one")),
            several => Err(not_one(format!(
                "{} is of more than one language: it holds {}",
                project.display(),
                marks(several)
                    .into_iter()
                    .filter(is_there)
                    .copied()
                    .collect::<Vec<_>>()
                    .join(", ")
            ))
            .hint("--lang says which one is meant")),
        }
    }
}

fn not_one(message: String) -> Failure {
    Failure::new(Exit::UNUSABLE, "no_project", message)
}
