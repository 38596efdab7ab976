//! Who is told of an entity that is created: the options that say so, and the settings of here.

use std::path::{Path, PathBuf};

use runwarden_host::Host;
use runwarden_host::model::{DurationMs, NotifyDiagnostic, NotifySettings, validate_id};
use runwarden_host::notify::settings::{Asked, Files, SETTINGS_FILE, Spec};
use runwarden_host::verbs::{lease_grace as lease_grace_of, notices};
use serde_json::{Value, json};

use crate::context::{Context, variable};
use crate::errors::Outcome;

/// Who is told.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct NotifyArgs {
    /// Tell a program, '["prog","{payload}"]', or a handler by name (see `notify ls`)
    #[arg(
        long = "notify",
        value_name = "SPEC",
        value_parser = spec,
        conflicts_with = "no_notify",
        help_heading = "Who is told"
    )]
    specs: Vec<Spec>,
    /// Tell nobody, whatever the settings say
    #[arg(long, help_heading = "Who is told")]
    no_notify: bool,
}

impl NotifyArgs {
    /// The notify settings of an entity that is created now, with the project's as this directory has them.
    ///
    /// # Errors
    /// A handler that is named cannot be had, or the store cannot be read.
    pub(crate) fn resolved(&self, host: &Host, directory: Option<&Path>) -> Outcome<NotifySettings> {
        let files = Files {
            working_directory: directory.map(Path::to_path_buf),
            ..files()
        };
        Ok(notices(host, &files, &self.asked())?.settings)
    }

    /// What the options themselves say, as it is part of the command; null when they say nothing.
    pub(crate) fn words(&self) -> Value {
        match self.asked() {
            Asked::Settings => Value::Null,
            Asked::Off => json!([]),
            Asked::Told(specs) => specs.iter().map(word).collect(),
        }
    }

    fn asked(&self) -> Asked {
        match (self.no_notify, self.specs.as_slice()) {
            (true, _) => Asked::Off,
            (false, []) => Asked::Settings,
            (false, specs) => Asked::Told(specs.to_vec()),
        }
    }
}

fn word(spec: &Spec) -> Value {
    match spec {
        Spec::Program(argv) => json!(argv),
        Spec::Named(name) => json!(name),
    }
}

/// Says in one line what is wrong with settings; they hold all the same.
pub(crate) fn warn(context: &Context, settings: &NotifySettings) {
    if let Some(said) = warning(&settings.diagnostics) {
        context.output.warn(&said);
    }
}

/// The settings in force here.
///
/// # Errors
/// The store cannot be read.
pub(crate) fn in_force(host: &Host) -> Outcome<NotifySettings> {
    Ok(notices(host, &files(), &Asked::Settings)?.settings)
}

/// From the lapse of a lease to the fence: as given, else as the settings of here have it. What is wrong with them is said.
pub(crate) fn lease_grace(context: &Context, given: Option<DurationMs>) -> Option<DurationMs> {
    if given.is_some() {
        return given;
    }
    let (grace, problems) = lease_grace_of(&files());
    if let Some(problem) = problems.first().filter(|_| grace.is_none()) {
        context.output.warn(&format!("settings: {problem}"));
    }
    grace
}

/// Where the settings of this command are.
pub(crate) fn files() -> Files {
    let below = |directory: PathBuf| directory.join("runwarden").join(SETTINGS_FILE);
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let global = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")));
    Files {
        working_directory: working_directory(),
        global: global.map(below),
    }
}

/// The directory in which this command works, unless it is gone.
pub(crate) fn working_directory() -> Option<PathBuf> {
    std::env::current_dir().ok()
}

/// What is wrong, in one line.
fn warning(diagnostics: &[NotifyDiagnostic]) -> Option<String> {
    let (first, others) = diagnostics.split_first()?;
    let whose = first.handler.as_ref().map(|name| format!("handler {name} is off: "));
    let more = match others.len() {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    Some(format!(
        "notify settings: {}{}{more}; `runwarden notify show` tells all",
        whose.unwrap_or_default(),
        first.message
    ))
}

/// Reads a program with its arguments as JSON, or the name of a handler.
fn spec(word: &str) -> Result<Spec, String> {
    if !word.starts_with('[') {
        return match validate_id(word) {
            Ok(()) => Ok(Spec::Named(word.to_owned())),
            Err(_) => Err("write a handler's name, or a program as JSON: '[\"prog\", \"{payload}\"]'".to_owned()),
        };
    }
    let mut argv: Vec<String> =
        serde_json::from_str(word).map_err(|_| "write a list of strings: '[\"prog\", \"{payload}\"]'".to_owned())?;
    if argv.iter().any(|argument| argument.contains('\0')) {
        return Err("no argument can hold NUL".to_owned());
    }
    match argv.first_mut() {
        None => return Err("write a program: '[\"prog\", \"{payload}\"]'".to_owned()),
        // Whoever starts it does so from somewhere else.
        Some(program) if program.contains('/') => {
            let path = std::path::absolute(&program)
                .ok()
                .and_then(|path| path.into_os_string().into_string().ok());
            *program = path.ok_or_else(|| "the program's path is not UTF-8".to_owned())?;
        }
        Some(_) => {}
    }
    Ok(Spec::Program(argv))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_a_list_of_words_and_a_handler_a_name() {
        let program = |words: &[&str]| Ok(Spec::Program(words.iter().map(|word| (*word).to_owned()).collect()));
        assert_eq!(spec(r#"["prog","{payload}"]"#), program(&["prog", "{payload}"]));
        assert_eq!(spec(r#"["/no/such/hook"]"#), program(&["/no/such/hook"]));
        assert_eq!(spec("ops"), Ok(Spec::Named("ops".to_owned())));
        let here = std::env::current_dir().expect("a working directory").join("tell");
        assert_eq!(spec(r#"["./tell"]"#), program(&[&here.to_string_lossy()]));
        for bad in ["", "prog arg", "[]", "[1]", "[\"a\"", r#"["a\u0000b"]"#, "a|b", "{}"] {
            assert!(spec(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_in_one_line() {
        let diagnostic = |handler: Option<&str>| NotifyDiagnostic {
            code: "c".to_owned(),
            handler: handler.map(str::to_owned),
            layer: runwarden_host::model::Layer::Project,
            message: "it is wrong".to_owned(),
        };
        assert_eq!(warning(&[]), None);
        let said = warning(&[diagnostic(Some("x")), diagnostic(None)]);
        let expected = "notify settings: handler x is off: it is wrong (and 1 more); `runwarden notify show` tells all";
        assert_eq!(said.as_deref(), Some(expected));
    }
}
