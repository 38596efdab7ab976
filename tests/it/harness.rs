//! A private home and the program in it; both are gone when the test ends.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use runwarden_host::policy::Limits;
use runwarden_host::process::{RunDir, ShimLock};
use runwarden_host::store::OpenMode;
use runwarden_host::{Clock, Config, Host};
use serde_json::Value;
use tempfile::TempDir;

/// A home of its own, in a directory of its own.
pub(crate) struct Home {
    directory: TempDir,
}

/// What the program answered.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Its exit code; -1 when a signal ended it.
    pub(crate) code: i32,
    /// Standard output.
    pub(crate) out: String,
    /// Standard error.
    pub(crate) err: String,
    asked: String,
}

impl Home {
    /// An empty home.
    pub(crate) fn new() -> Self {
        Self {
            directory: tempfile::tempdir().expect("a temporary directory"),
        }
    }

    /// A path beside the home.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The home itself.
    pub(crate) fn home(&self) -> PathBuf {
        self.path("home")
    }

    /// The program with these arguments and a clean environment, not started yet.
    pub(crate) fn command<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_runwarden"));
        command.args(arguments).env_clear().current_dir(self.directory.path());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
            .env("RUNWARDEN_HOME", self.home())
            .env("HOME", self.directory.path());
        command.env("USER", "ada").env("TZ", "UTC").env("LC_ALL", "C.UTF-8");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs the program.
    pub(crate) fn run<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Answer {
        self.run_with(arguments, &[])
    }

    /// Runs the program with variables set.
    pub(crate) fn run_with<A: AsRef<OsStr>>(&self, arguments: &[A], variables: &[(&str, &str)]) -> Answer {
        let words: Vec<String> = arguments
            .iter()
            .map(|a| a.as_ref().to_string_lossy().into_owned())
            .collect();
        let mut command = self.command(arguments);
        command.envs(variables.iter().copied());
        answered(command.spawn().expect("the program starts"), words.join(" "))
    }

    /// Runs the program, which must end with 0, and gives what it wrote, without the end of its last line.
    pub(crate) fn done<A: AsRef<OsStr>>(&self, arguments: &[A]) -> String {
        self.run(arguments).exits(0).out.trim_end().to_owned()
    }

    /// Runs the program with `--json`; it must end with 0 and write one document.
    pub(crate) fn json<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Value {
        let mut all: Vec<&OsStr> = arguments.iter().map(AsRef::as_ref).collect();
        all.push(OsStr::new("--json"));
        self.run(&all).exits(0).document()
    }
}

/// The program itself, for those who start it from inside a run or copy it.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_runwarden");

impl Home {
    /// Starts a detached run with these options and this program; it must start.
    pub(crate) fn detach(&self, id: &str, arguments: &[&str]) {
        self.run(&[&["run", "--detach", "--id", id], arguments].concat())
            .exits(0);
    }

    /// Starts the program and goes on.
    pub(crate) fn start<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Child {
        self.command(arguments).spawn().expect("the program starts")
    }

    /// The run as it is when its end is recorded and nothing of it lives.
    pub(crate) fn over(&self, id: &str) -> Value {
        until("the run is over", || {
            let listed = &self.json(&["ls", id])[0];
            listed["terminal"] == true && listed["runtime"]["state"] == "stopped"
        });
        self.json(&["show", id])
    }

    /// A file of the run's directory.
    pub(crate) fn of_run(&self, id: &str, name: &str) -> PathBuf {
        self.home().join("runs").join(id).join(name)
    }

    /// The exit record of a run.
    pub(crate) fn exit_record(&self, id: &str) -> Value {
        let text = std::fs::read_to_string(self.of_run(id, "exit.json")).expect("an exit record");
        serde_json::from_str(&text).expect("the exit record is JSON")
    }

    /// A named pipe: whoever reads it waits until somebody writes.
    pub(crate) fn gate(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).expect("a named pipe");
        path
    }

    /// Waits until a program has written this file, whole lines of it.
    pub(crate) fn told(&self, name: &str) -> String {
        let path = self.path(name);
        let mut text = String::new();
        until(&format!("{name} is written"), || {
            text = std::fs::read_to_string(&path).unwrap_or_default();
            text.ends_with('\n')
        });
        text.trim_end().to_owned()
    }
}

/// A test leaves nothing running: what a failed one started is killed, and a good one has seen to it. A shim lives until
/// the end is recorded, and would write into a home that is being removed.
impl Drop for Home {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.kill_all();
            return;
        }
        let Ok(runs) = std::fs::read_dir(self.home().join("runs")) else {
            return;
        };
        for run in runs.flatten() {
            let run = RunDir::at(run.path());
            until("every shim of the test has ended", || {
                !matches!(run.shim_lock(), Ok(ShimLock::Held))
            });
        }
    }
}

impl Home {
    fn kill_all(&self) {
        let _ = self.command(&["kill", "--all", "--grace", "0"]).output();
        // The cgroups that killed shims left.
        let _ = self.command(&["doctor", "--fix"]).output();
    }
}

/// Lets everybody through who waits at a gate, now and as long as the file is held.
pub(crate) fn opened(gate: &Path) -> std::fs::File {
    // Reading and writing never waits for the other side.
    let both = std::fs::OpenOptions::new().read(true).write(true).open(gate);
    let mut both = both.expect("the gate is there");
    std::io::Write::write_all(&mut both, b"go\n").expect("a pipe has room");
    both
}

/// The state letter of a process, with the number of its start; none when it is gone.
pub(crate) fn process(pid: &str) -> Option<(char, u64)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let rest = stat.rsplit_once(") ")?.1;
    let mut fields = rest.split(' ');
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

/// Whether a process is there and no zombie.
pub(crate) fn lives(pid: &str) -> bool {
    process(pid).is_some_and(|(state, _)| !matches!(state, 'Z' | 'X'))
}

/// The answer of a program that was started.
pub(crate) fn answered(child: Child, asked: String) -> Answer {
    let output = child.wait_with_output().expect("the program ends");
    Answer {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
        asked,
    }
}

impl Answer {
    /// The same answer, which must have this exit code.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "`{}` said {}{}", self.asked, self.out, self.err);
        self
    }

    /// The document on standard output.
    #[track_caller]
    pub(crate) fn document(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("`{}`: {error}: {}", self.asked, self.out))
    }

    /// The same answer, which must end with one hint that says this.
    #[track_caller]
    pub(crate) fn hints(self, words: &str) -> Self {
        let hints: Vec<&str> = self.err.lines().filter(|line| line.starts_with("hint: ")).collect();
        assert!(
            matches!(hints.as_slice(), [hint] if hint.contains(words)),
            "`{}` hints: {}",
            self.asked,
            self.err
        );
        assert!(self.err.starts_with("error: "), "{}", self.err);
        self
    }
}

/// Waits until something holds; the end of patience fails the test.
#[track_caller]
#[expect(
    clippy::disallowed_methods,
    reason = "between two looks at another process, at most for the bound"
)]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A file of `tests/vectors`.
pub(crate) fn vectors(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/vectors")
        .join(name);
    let text = std::fs::read_to_string(&path).expect("the vectors are in the repository");
    serde_json::from_str(&text).expect("vectors are JSON")
}

/// The library on a store that is made if it is missing, without the program.
pub(crate) fn host(home: &Path) -> Host {
    library(home, OpenMode::Create)
}

/// The library on a store, opened as it is told.
pub(crate) fn library(home: &Path, mode: OpenMode) -> Host {
    Host::open(config(home), mode).expect("a store")
}

/// What the library is opened with.
pub(crate) fn config(home: &Path) -> Config {
    Config {
        home: home.to_owned(),
        database: None,
        limits: Limits::DEFAULT,
        clock: Clock::System,
        compiler: None,
        program: Path::new("/nonexistent").to_owned(),
        shim: &[],
        variable: |_| None,
    }
}

/// Waits until a program that was started watches SIGINT and SIGTERM: from then on it is waiting.
pub(crate) fn until_watching(child: &Child) {
    /// Signals are bits from 0: SIGINT is number 2, SIGTERM number 15.
    const WATCHED: u64 = 1 << 1 | 1 << 14;
    let path = format!("/proc/{}/status", child.id());
    until("the program watches signals", || {
        let status = std::fs::read_to_string(&path).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:\t"));
        caught
            .and_then(|mask| u64::from_str_radix(mask, 16).ok())
            .is_some_and(|mask| mask & WATCHED == WATCHED)
    });
}
