//! `demo`: everything that is promised, shown on real processes in a home of its own, each step verified.

mod lost_worker;
mod receiver;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hyper::StatusCode;
use serde_json::Value;

use crate::context::Context;
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;
use crate::output::{Output, Style, Text};
use receiver::{Receiver, SECRET};

/// Show what Runwarden does, on real processes, in a temporary home
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Keep the home afterwards and say where it is
    #[arg(long)]
    keep: bool,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden demo
  runwarden demo --keep

Nothing outside the temporary home is touched. Exit 0 says that every step was verified.";

/// A program that ignores TERM, hides a child in a session of its own, and writes the child's number.
const STUBBORN: &str = "trap '' TERM; setsid sleep 1000 & echo $! > hidden.pid; echo working; wait; sleep 1000";

/// Runs the steps in order; the first one that does not hold ends it.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Exit> {
    let home = TemporaryHome::new()?;
    let demo = Demo {
        output: context.output,
        width: context.page().width,
        home: home.path.clone(),
        receiver: Receiver::start().map_err(|error| io("listen on this machine", &error))?,
    };
    let steps: [(&str, Act); 10] = [
        ("a run's end is known, with its true exit code", Demo::an_end_is_known),
        ("death by a signal is no exit code", Demo::a_signal_is_no_exit),
        (
            "a start that cannot be is a recorded failure",
            Demo::a_failed_start_is_recorded,
        ),
        ("a play with a run below it", Demo::a_play_with_a_run),
        (
            "the play is killed with its stubborn tree, and the proof is shown",
            Demo::a_play_is_killed,
        ),
        ("a terminal status stays", Demo::a_terminal_status_stays),
        (
            "a policy is swapped and rolled back under a living run",
            Demo::a_policy_is_swapped,
        ),
        ("an end is told, signed", Demo::an_end_is_told),
        (
            "a notice that was refused is kept, and told when an operator says so",
            Demo::a_refused_notice_is_revived,
        ),
        (
            "a worker is killed, and two versions of a policy tell two stories of it",
            Demo::a_worker_is_killed,
        ),
    ];
    for (number, (title, step)) in (1..).zip(steps) {
        context
            .output
            .text(&Text::styled(Style::Strong, format!("{number}. {title}")))
            .map_err(|error| io("say", &error))?;
        if let Err(why) = step(&demo) {
            return Err(Failure::new(
                Exit::NO,
                "demo",
                format!("step {number} did not hold: {why}"),
            ));
        }
    }
    let done = Text::styled(Style::Good, format!("{} steps, each verified.", steps.len()));
    context.output.text(&done).map_err(|error| io("say", &error))?;
    if args.keep {
        let kept = home.keep();
        let words = format!("kept: export RUNWARDEN_HOME={}", kept.display());
        context
            .output
            .text(&Text::of(words))
            .map_err(|error| io("say", &error))?;
    }
    Ok(Exit::DONE)
}

/// A step holds, or says why not.
type Step = Result<(), String>;

/// What a step does.
type Act = fn(&Demo) -> Step;

struct Demo {
    output: Output,
    width: Option<u16>,
    home: PathBuf,
    receiver: Receiver,
}

/// The variable that holds the secret of the demo's webhook.
const SECRET_VARIABLE: &str = "RUNWARDEN_DEMO_SECRET";

/// What a command of the demo answered.
struct Answer {
    code: i32,
    out: String,
}

impl Demo {
    fn an_end_is_known(&self) -> Step {
        let run = self.tell(&[
            "run",
            "--quiet",
            "--id",
            "hello",
            "--",
            "sh",
            "-c",
            "echo hello from a run; exit 7",
        ])?;
        expect("the program's own code", run.code, 7)?;
        let entity = self.entity("hello")?;
        expect("status", &entity["status"], "failed")?;
        expect("exit_code", &entity["fields"]["exit_code"], 7)
    }

    fn a_signal_is_no_exit(&self) -> Step {
        let run = self.tell(&["run", "--quiet", "--id", "struck", "--", "sh", "-c", "kill -KILL $$"])?;
        expect("128 and the signal", run.code, 137)?;
        let entity = self.entity("struck")?;
        expect("term_signal", &entity["fields"]["term_signal"], 9)?;
        expect("an exit code", entity["fields"]["exit_code"].is_null(), true)
    }

    fn a_failed_start_is_recorded(&self) -> Step {
        let run = self.tell(&["run", "--quiet", "--id", "absent", "--", "./no-such-program"])?;
        expect("not found", run.code, 127)?;
        let entity = self.entity("absent")?;
        expect("status", &entity["status"], "failed")?;
        expect("reason", &entity["reason"]["code"], "run.failed.spawn_error")
    }

    fn a_play_with_a_run(&self) -> Step {
        self.holds(&["create", "play", "--id", "opening-night"])?;
        let directory = self.home.display().to_string();
        let program = ["--", "sh", "-c", STUBBORN];
        let start = [
            "run",
            "--detach",
            "--id",
            "stubborn",
            "--parent",
            "play/opening-night",
            "--cwd",
            &directory,
        ];
        self.holds(&[&start[..], &program[..]].concat())?;
        let hidden = self.home.join("hidden.pid");
        until("the hidden child to be there", || hidden.exists())?;
        self.holds(&["ls", "--tree", "--processes"])
    }

    fn a_play_is_killed(&self) -> Step {
        self.holds(&["kill", "--dry-run", "opening-night"])?;
        self.holds(&["kill", "--grace", "500ms", "--note", "it is late", "opening-night"])?;
        expect("status", &self.entity("opening-night")?["status"], "blocked")?;
        let entity = self.entity("stubborn")?;
        expect("status", &entity["status"], "cancelled")?;
        expect("reason", &entity["reason"]["code"], "run.cancelled.force_kill")?;
        let proof = match entity["runtime"]["containment"].as_str() {
            Some("cgroup") => "cgroup_empty",
            _ => "subreaper_echild",
        };
        expect("proof", &entity["reason"]["evidence"][0]["proof"], proof)?;
        let hidden = std::fs::read_to_string(self.home.join("hidden.pid")).map_err(|error| error.to_string())?;
        let process = Path::new("/proc").join(hidden.trim());
        if process.exists() {
            Err(format!("process {} lives on", hidden.trim()))
        } else {
            Ok(())
        }
    }

    fn a_terminal_status_stays(&self) -> Step {
        let back = self.tell(&["transition", "stubborn", "completed", "--reason", "run.completed.ok"])?;
        expect("rejected", back.code, 5)?;
        self.holds(&["history", "stubborn"])?;
        expect("status", &self.entity("stubborn")?["status"], "cancelled")
    }

    fn a_policy_is_swapped(&self) -> Step {
        self.holds(&["run", "--detach", "--id", "old-rules", "--", "sleep", "1000"])?;
        self.holds(&["policy", "activate", "schedule_run@1", "--reason", "to show it"])?;
        self.holds(&["create", "schedule_run", "--id", "under-1"])?;
        self.holds(&["policy", "rollback", "schedule_run", "--reason", "shown"])?;
        self.holds(&["create", "schedule_run", "--id", "under-2"])?;
        expect(
            "the version it was created under",
            &self.entity("under-1")?["policy"]["version"],
            "1.0.0",
        )?;
        expect(
            "the version after the rollback",
            &self.entity("under-2")?["policy"]["version"],
            "2.0.0",
        )?;
        expect("the run lives on", &self.entity("old-rules")?["status"], "running")?;
        self.holds(&["kill", "old-rules"])?;
        let waited = self.tell(&["wait", "old-rules"])?;
        expect("ended without success", waited.code, 1)
    }

    fn an_end_is_told(&self) -> Step {
        let url = self.receiver.url();
        let bind = ["notify", "add", "ops", "--url", &url, "--secret-env", SECRET_VARIABLE];
        self.holds(&[&bind[..], &["--allow-private"]].concat())?;
        self.tell(&["run", "--quiet", "--id", "heard", "--", "sh", "-c", "exit 3"])?;
        until("the webhook", || !self.receiver.received().is_empty())?;
        self.received("heard", "failed")?;
        let delivered = || self.notices("delivered").is_ok_and(|notices| !notices.is_empty());
        until("the outcome of the attempt", delivered)?;
        self.holds(&["outbox", "ls"])
    }

    fn a_refused_notice_is_revived(&self) -> Step {
        self.receiver.answers(StatusCode::GONE);
        self.tell(&["run", "--quiet", "--id", "unheard", "--", "true"])?;
        let dead = || self.notices("dead_letter").is_ok_and(|notices| !notices.is_empty());
        until("the refusal to be written down", dead)?;
        self.holds(&["outbox", "ls", "--status", "dead_letter"])?;
        self.receiver.answers(StatusCode::NO_CONTENT);
        self.holds(&["outbox", "retry", "--all-dead"])?;
        self.holds(&["outbox", "deliver", "--until-empty"])?;
        self.received("unheard", "completed")?;
        let ids: Vec<String> = self.receiver.received().into_iter().map(|one| one.id).collect();
        let again = ids.len() >= 2 && ids[ids.len() - 1] == ids[ids.len() - 2];
        expect("the second attempt has the id of the first", again, true)?;
        expect("dead letters", self.notices("dead_letter")?.len(), 0)
    }

    /// The last thing received tells this end, signed.
    fn received(&self, id: &str, status: &str) -> Step {
        let received = self.receiver.received();
        let last = received.last().ok_or("nothing was received")?;
        let told = format!(
            "received: {} is {}, webhook-id {}, signature {}",
            last.body["entity"]["id"],
            last.body["terminal_status"],
            last.id,
            if last.signed { "verified" } else { "WRONG" }
        );
        self.say(&Text::styled(Style::Good, format!("   {told}")))?;
        expect("the signature is right", last.signed, true)?;
        expect("the run", &last.body["entity"]["id"], id)?;
        expect("its end", &last.body["terminal_status"], status)
    }

    /// Notices with this status.
    fn notices(&self, status: &str) -> Result<Vec<Value>, String> {
        let answer = self.ask(&["outbox", "ls", "--status", status, "--json"])?;
        serde_json::from_str(&answer.out).map_err(|error| format!("outbox ls: {error}"))
    }

    /// Shows a command and what it says, and gives its answer.
    fn tell(&self, arguments: &[&str]) -> Result<Answer, String> {
        let shown = arguments.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        self.say(&Text::styled(Style::Dim, format!("   $ runwarden {shown}")))?;
        let answer = self.ask(arguments)?;
        for line in answer.out.lines() {
            self.say(&Text::of(format!("   {}", line.replace('\t', "  "))))?;
        }
        Ok(answer)
    }

    /// As [`Demo::tell`], for a command that must succeed.
    fn holds(&self, arguments: &[&str]) -> Step {
        expect("its exit code", self.tell(arguments)?.code, 0)
    }

    fn entity(&self, id: &str) -> Result<Value, String> {
        let answer = self.ask(&["show", "--json", id])?;
        serde_json::from_str(&answer.out).map_err(|error| format!("show {id}: {error}"))
    }

    /// A command of the demo, not yet started.
    fn command(&self, arguments: &[&str]) -> Result<Command, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command
            .arg("--home")
            .arg(&self.home)
            .args(arguments)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit());
        for name in ["RUNWARDEN_STORE", "RUNWARDEN_ID", "RUNWARDEN_REF"] {
            command.env_remove(name);
        }
        command.env(SECRET_VARIABLE, SECRET);
        if let Some(width) = self.width {
            command.env("COLUMNS", width.saturating_sub(3).to_string());
        }
        Ok(command)
    }

    fn ask(&self, arguments: &[&str]) -> Result<Answer, String> {
        let output = self.command(arguments)?.output().map_err(|error| error.to_string())?;
        let code = output.status.code().unwrap_or(-1);
        Ok(Answer {
            code,
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
        })
    }

    fn say(&self, text: &Text) -> Step {
        self.output.text(text).map_err(|error| error.to_string())
    }
}

fn expect<T: std::fmt::Debug, U: std::fmt::Debug + PartialEq<T>>(what: &str, found: U, wanted: T) -> Step {
    if found == wanted {
        Ok(())
    } else {
        Err(format!("{what}: {found:?} instead of {wanted:?}"))
    }
}

/// Waits for what a program that was just started does first.
#[expect(
    clippy::disallowed_methods,
    reason = "between two looks at what another process does, at most for the bound"
)]
fn until(what: &str, holds: impl Fn() -> bool) -> Step {
    const LOOKS: u32 = 500;
    for _ in 0..LOOKS {
        if holds() {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    Err(format!("waited 5 s in vain for {what}"))
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./@:=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

fn io(doing: &str, error: &std::io::Error) -> Failure {
    Failure::new(Exit::IO, "system", format!("cannot {doing}")).cause(error.to_string())
}

/// A home that is removed when the demo ends, whatever lives in it ended first.
struct TemporaryHome {
    path: PathBuf,
    kept: bool,
}

impl TemporaryHome {
    fn new() -> Outcome<Self> {
        let mut name = [0; 8];
        rustix::rand::getrandom(&mut name, rustix::rand::GetRandomFlags::empty())
            .map_err(|error| io("draw a name", &error.into()))?;
        let path = std::env::temp_dir().join(format!("runwarden-demo-{:016x}", u64::from_le_bytes(name)));
        std::fs::create_dir(&path).map_err(|error| io("make a temporary home", &error))?;
        Ok(Self { path, kept: false })
    }

    fn keep(mut self) -> PathBuf {
        self.kept = true;
        self.path.clone()
    }
}

impl Drop for TemporaryHome {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        // After a step that did not hold, something may live on: it is ended before its record goes.
        if let Ok(program) = std::env::current_exe() {
            let mut kill = Command::new(program);
            kill.arg("--home")
                .arg(&self.path)
                .args(["kill", "--grace", "0", "--all"]);
            let _ = kill.stdout(Stdio::null()).stderr(Stdio::null()).status();
        }
        if std::fs::remove_dir_all(&self.path).is_err() {
            let _ = writeln!(std::io::stderr(), "left behind: {}", self.path.display());
        }
    }
}
