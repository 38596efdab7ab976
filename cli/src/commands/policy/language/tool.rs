//! Programs that build projects.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use crate::errors::{Failure, Outcome};
use crate::exit::Exit;
use crate::output::{Output, Style, Text};

/// A program that builds projects, and where it comes from.
pub(super) struct Tool {
    /// What is started.
    pub(super) program: &'static str,
    /// What to do where it is not there.
    pub(super) install: &'static str,
}

impl Tool {
    /// The program with these arguments, to be started in a directory; it is asked nothing.
    pub(super) fn command<A: AsRef<OsStr>>(&self, directory: &Path, arguments: &[A]) -> Command {
        let mut command = Command::new(self.program);
        command.args(arguments).current_dir(directory).stdin(Stdio::null());
        command
    }

    /// Runs it to its end and gives what it wrote to standard output; all else it says goes to standard error as it comes.
    ///
    /// # Errors
    /// It is not there, cannot be started, or ends with another code than 0.
    pub(super) fn answer(&self, command: &mut Command) -> Outcome<Vec<u8>> {
        let output = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).output();
        let output = output.map_err(|error| self.not_started(&error))?;
        self.judged(output.status)?;
        Ok(output.stdout)
    }

    /// Says what is started, and runs it to its end; all it says goes to standard error as it comes.
    ///
    /// # Errors
    /// As [`Tool::answer`].
    pub(super) fn run(&self, command: &mut Command, output: &Output) -> Outcome<()> {
        let words = [command.get_program()].into_iter().chain(command.get_args());
        let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
        output.note(&Text::styled(Style::Dim, format!("$ {}", words.join(" "))));
        let status = command.stdout(std::io::stderr()).stderr(Stdio::inherit()).status();
        self.judged(status.map_err(|error| self.not_started(&error))?)
    }

    fn not_started(&self, error: &std::io::Error) -> Failure {
        let program = self.program;
        if error.kind() == ErrorKind::NotFound {
            let message = format!("{program} is needed to build this, and is not there");
            return Failure::new(Exit::UNUSABLE, "tool_missing", message).hint(self.install);
        }
        Failure::new(Exit::IO, "system", format!("cannot start {program}")).cause(error.to_string())
    }

    fn judged(&self, status: ExitStatus) -> Outcome<()> {
        if status.success() {
            return Ok(());
        }
        let message = match status.code() {
            Some(code) => format!("{} ended with {code}", self.program),
            None => format!("{} was killed: {status}", self.program),
        };
        Err(Failure::new(Exit::UNUSABLE, "build_failed", message))
    }
}

const PYTHON: Tool = Tool {
    program: "python3",
    install: "install Python 3 with venv: apt-get install python3-venv",
};

const PIP: Tool = Tool {
    program: ".venv/bin/pip",
    install: "remove .venv to have it made again",
};

/// The project's own virtual environment with what its requirements.txt names: made where it is not there.
pub(super) fn environment(project: &Path, output: &Output) -> Outcome<()> {
    const READY: &str = ".venv/ready";
    if project.join(READY).exists() {
        return Ok(());
    }
    PYTHON.run(&mut PYTHON.command(project, &["-m", "venv", ".venv"]), output)?;
    let arguments = ["install", "--quiet", "--requirement", "requirements.txt"];
    PIP.run(&mut PIP.command(project, &arguments), output)?;
    let ready = project.join(READY);
    std::fs::write(&ready, []).map_err(|error| Failure::file("write", &ready, &error))
}
