//! The work specification on the command line: one set of options for every way of starting a run.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use runwarden_host::model::{Bytes, DurationMs, removal_refusal, validate_id};
use runwarden_host::process::real_path;
use runwarden_host::verbs::IdChoice;
use runwarden_host::{Contain, GRACE_DEFAULT, Host, LOG_LIMIT_MIN_BYTES, StopBy, Variable, Work};

use crate::context::precious;
use crate::errors::{Failure, Outcome};
use crate::notify::{NotifyArgs, working_directory};
use crate::parse;

/// What a run is to do and within what bounds.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct WorkArgs {
    /// Its id: letters, digits, `.`, `_`, `-` [default: one is drawn]
    #[arg(long, value_name = "ID", help_heading = "What it is")]
    pub(crate) id: Option<String>,
    /// A name that several runs may share
    #[arg(long, value_name = "N", help_heading = "What it is")]
    pub(crate) name: Option<String>,
    /// Link it below this entity
    #[arg(long = "parent", value_name = "REF", help_heading = "What it is")]
    pub(crate) parents: Vec<String>,
    /// Do not link it below the run that this command is inside of
    #[arg(long, help_heading = "What it is")]
    pub(crate) no_parent: bool,
    /// Label it
    #[arg(long = "tag", value_name = "K=V", value_parser = parse::text_pair, help_heading = "What it is")]
    pub(crate) tags: Vec<(String, String)>,
    /// Stop it after so long awake
    #[arg(long, value_name = "D", value_parser = parse::duration, allow_negative_numbers = true, help_heading = "How it is stopped")]
    pub(crate) timeout: Option<DurationMs>,
    /// From the first signal of a stop to KILL [default: 10s]
    #[arg(long, value_name = "D", value_parser = parse::duration, allow_negative_numbers = true, help_heading = "How it is stopped")]
    pub(crate) grace: Option<DurationMs>,
    /// What a stop tries first: a signal, or stdin to close standard input [default: TERM]
    #[arg(long, value_name = "SIGNAL|stdin", value_parser = stop_by, help_heading = "How it is stopped")]
    pub(crate) stop_by: Option<StopBy>,
    /// What holds together everything it starts: auto, cgroup, subreaper, pidns
    #[arg(long, value_name = "HOW", value_parser = contain, default_value = "auto", help_heading = "How it is stopped")]
    pub(crate) contain: Contain,
    /// Its working directory [default: this one]
    #[arg(long, value_name = "DIR", help_heading = "Where it runs")]
    pub(crate) cwd: Option<PathBuf>,
    /// Keep so much of its output, the beginning and the end: 1 MiB at least [default: 256MiB]
    #[arg(long, value_name = "SIZE", value_parser = log_limit, help_heading = "Where it runs")]
    pub(crate) log_limit: Option<u64>,
    /// Set a variable (its value is stored with the run), or pass one on by name
    #[arg(long = "env", value_name = "K=V|K", help_heading = "Where it runs")]
    pub(crate) env: Vec<OsString>,
    /// Pass on no variables but those given with --env
    #[arg(long, help_heading = "Where it runs")]
    pub(crate) clear_env: bool,
    /// A directory that belongs to the run and is removed with it, by rm and prune; it may be made later
    #[arg(long = "own-dir", value_name = "DIR", help_heading = "Where it runs")]
    pub(crate) own_dirs: Vec<PathBuf>,
    /// A file that must exist at the end: absolute, or below artifacts/ or the working directory
    #[arg(
        long = "expect-artifact",
        value_name = "GLOB",
        help_heading = "What counts as success"
    )]
    pub(crate) expect_artifacts: Vec<String>,
    /// At least one piece of evidence must be left (see `report --evidence`, or any file in artifacts/)
    #[arg(long, help_heading = "What counts as success")]
    pub(crate) want_evidence: bool,
    /// What the program needs to take up its work again
    #[arg(long, value_name = "T", help_heading = "What it is")]
    pub(crate) resume_token: Option<String>,
    /// How it was spawned, for health limits: agent, flow, …
    #[arg(long, value_name = "S", help_heading = "What it is")]
    pub(crate) spawn_kind: Option<String>,
    #[command(flatten)]
    pub(crate) notify: NotifyArgs,
}

impl WorkArgs {
    /// The id that was given, or one that is drawn, and whose choice it is.
    ///
    /// # Errors
    /// The system has no entropy to give.
    pub(crate) fn own_id(&self, host: &Host) -> Outcome<(String, IdChoice)> {
        Ok(match &self.id {
            Some(id) => (id.clone(), IdChoice::Given),
            None => (host.draw_id()?, IdChoice::Drawn),
        })
    }

    /// Where the run works, without links and dots where it is there: what is above it is what is above the run. None when
    /// none is given and this command's own is gone.
    pub(crate) fn directory(&self) -> Option<PathBuf> {
        match &self.cwd {
            Some(cwd) => std::fs::canonicalize(cwd).or_else(|_| std::path::absolute(cwd)).ok(),
            None => working_directory(),
        }
    }

    /// The specification, for this program and its arguments.
    ///
    /// # Errors
    /// The working directory cannot be named, or a directory cannot be the run's own.
    pub(crate) fn work(&self, argv: &[OsString]) -> Outcome<Work> {
        let cwd = match &self.cwd {
            Some(cwd) => cwd.clone(),
            None => std::env::current_dir().map_err(|error| {
                Failure::usage("the working directory is gone")
                    .cause(error.to_string())
                    .hint("give --cwd DIR")
            })?,
        };
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let bytes = |path: PathBuf| Bytes::from(path.into_os_string());
        let mut work = Work::new(argv.iter().cloned().map(Bytes::from).collect(), bytes(absolute(&cwd)));
        work.env = self.env.iter().map(|given| variable(given)).collect();
        work.clear_env = self.clear_env;
        work.timeout_ms = self.timeout;
        work.grace_ms = self.grace.unwrap_or(GRACE_DEFAULT);
        work.contain = self.contain;
        work.log_limit_bytes = self.log_limit;
        work.stop_by = self.stop_by.unwrap_or_default();
        work.expect_artifacts.clone_from(&self.expect_artifacts);
        work.want_evidence = self.want_evidence;
        work.own_dirs = self
            .own_dirs
            .iter()
            .map(|path| own_directory(path))
            .collect::<Outcome<_>>()?;
        work.resume_token.clone_from(&self.resume_token);
        work.spawn_kind.clone_from(&self.spawn_kind);
        Ok(work)
    }
}

/// A directory as it is registered: by the path that it has now, so that no link that is changed later leads elsewhere.
fn own_directory(given: &Path) -> Outcome<Bytes> {
    let refuse = |why: &str| {
        Failure::usage(format!("--own-dir {}: {why}", given.display()))
            .hint("give a directory that is the run's alone: it is removed with the run")
    };
    let absolute = std::path::absolute(given).map_err(|error| refuse(&error.to_string()))?;
    match std::fs::symlink_metadata(&absolute) {
        Ok(found) if found.is_symlink() => return Err(refuse("it is a symbolic link")),
        Ok(found) if !found.is_dir() => return Err(refuse("it is no directory")),
        Ok(_) => {}
        Err(_) if absolute.parent().is_some_and(Path::is_dir) => {}
        Err(error) => return Err(refuse(&error.to_string())),
    }
    let real = real_path(&absolute);
    match removal_refusal(&real, &precious()) {
        Some(why) => Err(refuse(why)),
        None => Ok(Bytes::from(real.into_os_string())),
    }
}

/// This process's environment.
pub(crate) fn inherited() -> Vec<(Bytes, Bytes)> {
    std::env::vars_os()
        .map(|(name, value)| (Bytes::from(name), Bytes::from(value)))
        .collect()
}

/// This machine's name for people, as far as it can be part of an id.
pub(crate) fn machine() -> String {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy();
    validate_id(&name).map_or_else(|_| "worker".to_owned(), |()| name.into_owned())
}

fn variable(given: &OsStr) -> Variable {
    let bytes = given.as_bytes();
    match bytes.iter().position(|byte| *byte == b'=') {
        Some(at) => Variable::Given {
            name: Bytes::from(OsString::from_vec(bytes[..at].to_vec())),
            value: Bytes::from(OsString::from_vec(bytes[at + 1..].to_vec())),
        },
        None => Variable::Inherited {
            name: Bytes::from(given),
        },
    }
}

fn log_limit(word: &str) -> Result<u64, String> {
    match parse::size(word)? {
        bytes @ LOG_LIMIT_MIN_BYTES.. => Ok(bytes),
        _ => Err("1MiB is the least that can be kept".to_owned()),
    }
}

fn contain(word: &str) -> Result<Contain, String> {
    match word {
        "auto" => Ok(Contain::Auto),
        "cgroup" => Ok(Contain::Cgroup),
        "subreaper" => Ok(Contain::Subreaper),
        "pidns" => Ok(Contain::PidNamespace),
        _ => Err("one of auto, cgroup, subreaper, pidns".to_owned()),
    }
}

fn stop_by(word: &str) -> Result<StopBy, String> {
    if word == "stdin" {
        return Ok(StopBy::Stdin);
    }
    parse::signal(word)
        .map(StopBy::Signal)
        .map_err(|problem| format!("{problem}, or stdin"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_has_a_value_or_is_passed_on() {
        let given = |text: &str| variable(OsStr::new(text));
        let (name, value) = (Bytes::from("A"), Bytes::from("b=c"));
        assert_eq!(
            given("A=b=c"),
            Variable::Given {
                name: name.clone(),
                value
            }
        );
        assert_eq!(
            given("A="),
            Variable::Given {
                name: name.clone(),
                value: Bytes::default()
            }
        );
        assert_eq!(given("A"), Variable::Inherited { name });
    }

    #[test]
    fn a_stop_begins_with_a_signal_or_the_end_of_input() {
        assert_eq!(stop_by("stdin"), Ok(StopBy::Stdin));
        assert_eq!(stop_by("INT"), Ok(StopBy::Signal(2)));
        assert!(stop_by("nonsense").is_err());
    }
}
