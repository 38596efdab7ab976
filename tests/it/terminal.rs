//! run on a terminal: a real pseudo-terminal, with the program as the leader of its session.

use std::fs::File;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process_group};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use serde_json::json;

use crate::harness::{Home, PROGRAM, lives, process, until};

/// A terminal as its user has it: what is typed, what is seen, how it can be closed.
struct Terminal {
    master: File,
    /// Kept, so that the terminal stays when its program has ended.
    _slave: OwnedFd,
    child: Child,
    seen: Vec<u8>,
}

/// The same command with signals as a terminal gives them: whoever runs the tests in the background ignores Ctrl-C, and a
/// program keeps what it finds ignored.
fn with_default_signals(command: &Command) -> Command {
    let mut reset = Command::new("env");
    reset
        .arg("--default-signal")
        .arg(command.get_program())
        .args(command.get_args())
        .env_clear();
    reset.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(directory) = command.get_current_dir() {
        reset.current_dir(directory);
    }
    reset
}

impl Terminal {
    fn start(command: Command) -> Self {
        let mut command = with_default_signals(&command);
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a pseudo-terminal");
        grantpt(&master).expect("it is granted");
        unlockpt(&master).expect("it is unlocked");
        let name = ptsname(&master, Vec::new()).expect("it has a name");
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = rustix::fs::open(name.as_c_str(), flags, Mode::empty()).expect("its other side");
        tcsetwinsize(&master, size(30, 100)).expect("its size");
        let stream = || slave.try_clone().expect("a copy");
        command.stdin(stream()).stdout(stream()).stderr(stream());
        let lead = move || {
            rustix::process::setsid()?;
            rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
            Ok(())
        };
        // SAFETY: the closure makes two system calls and allocates nothing.
        unsafe { command.pre_exec(lead) };
        let child = command.spawn().expect("the program starts");
        let master = File::from(master);
        rustix::io::ioctl_fionbio(&master, true).expect("it does not wait");
        Self {
            master,
            _slave: slave,
            child,
            seen: Vec::new(),
        }
    }

    /// `run` on a terminal.
    fn run(home: &Home, options: &[&str], text: &str) -> Self {
        Self::start(home.command(&[&["run", "--id", "one"], options, &["--", "sh", "-c", text]].concat()))
    }

    /// Reads what there is, as fast as a terminal does: with a pause for every few bytes, a program that writes without
    /// end would be ahead of us by more than we ever read.
    fn look(&mut self) {
        const AT_ONCE: usize = 1 << 20;
        let mut chunk = [0; 4096];
        let enough = self.seen.len() + AT_ONCE;
        while self.seen.len() < enough {
            match rustix::io::read(&self.master, &mut chunk) {
                Ok(length @ 1..) => self.seen.extend_from_slice(&chunk[..length]),
                _ if self.has_more() => {}
                _ => return,
            }
        }
    }

    /// Whether more comes within a moment.
    fn has_more(&self) -> bool {
        const MOMENT: Timespec = Timespec {
            tv_sec: 0,
            tv_nsec: 2_000_000,
        };
        let mut watched = [PollFd::new(&self.master, PollFlags::IN)];
        poll(&mut watched, Some(&MOMENT)).is_ok() && watched[0].revents().contains(PollFlags::IN)
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen).into_owned()
    }

    /// Waits until these words are on the terminal, this often.
    #[track_caller]
    fn sees(&mut self, words: &str, times: usize) {
        until(&format!("{words} on the terminal"), || {
            self.look();
            self.text().matches(words).count() >= times
        });
    }

    fn types(&mut self, bytes: &[u8]) {
        std::io::Write::write_all(&mut self.master, bytes).expect("the terminal takes it");
    }

    fn modes(&self) -> Termios {
        tcgetattr(self.master.as_fd()).expect("the terminal has modes")
    }

    fn resize(&self, rows: u16, columns: u16) {
        tcsetwinsize(self.master.as_fd(), size(rows, columns)).expect("its size");
    }

    /// Waits for the end of the program.
    #[track_caller]
    fn ends(&mut self) -> ExitStatus {
        let mut status = None;
        until("the command ends", || {
            self.look();
            status = self.child.try_wait().expect("a child");
            status.is_some()
        });
        self.look();
        status.expect("it has ended")
    }

    /// Hangs up as a shell does that loses its terminal: on the whole process group of its job.
    fn hangs_up(&self) {
        let group = Pid::from_raw(self.child.id().cast_signed()).expect("a number");
        kill_process_group(group, Signal::HUP).expect("it is there: nobody has waited for it");
    }

    /// Closes the terminal under its program, and waits for the end of that.
    #[track_caller]
    fn closed(self) -> ExitStatus {
        let Self { master, mut child, .. } = self;
        drop(master);
        let mut status = None;
        until("the command ends", || {
            status = child.try_wait().expect("a child");
            status.is_some()
        });
        status.expect("it has ended")
    }
}

const fn size(rows: u16, columns: u16) -> Winsize {
    Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

#[test]
fn a_program_on_a_terminal_has_one_with_the_size_of_ours() {
    let home = Home::new();
    let mut terminal = Terminal::run(
        &home,
        &[],
        "test -t 0 && test -t 1 && test -t 2 && echo all && stty size",
    );
    assert_eq!(terminal.ends().code(), Some(0), "{}", terminal.text());
    assert!(terminal.text().contains("all\r\n30 100\r\n"), "{}", terminal.text());
    let merged = std::fs::read_to_string(home.of_run("one", "output.log")).expect("one log");
    assert!(merged.contains("30 100"), "{merged}");
    assert!(!home.of_run("one", "stdout.log").exists());
}

#[test]
fn without_a_pseudo_terminal_the_program_has_pipes_and_our_input() {
    let home = Home::new();
    let text = "test -t 0 && echo in; test -t 1 || echo no-out; test -t 2 || echo no-err; read line; echo got-$line";
    let mut terminal = Terminal::run(&home, &["--no-tty"], text);
    terminal.sees("no-err", 1);
    terminal.types(b"word\r");
    assert_eq!(terminal.ends().code(), Some(0), "{}", terminal.text());
    for words in ["in\r\n", "no-out", "got-word"] {
        assert!(terminal.text().contains(words), "{words}: {}", terminal.text());
    }
}

#[test]
fn a_script_may_ask_for_a_pseudo_terminal() {
    let home = Home::new();
    let answer = home
        .run(&["run", "--tty", "--", "sh", "-c", "test -t 0 && test -t 1 && echo both"])
        .exits(0);
    assert_eq!((answer.out.as_str(), answer.err.as_str()), ("both\r\n", ""));
}

#[test]
fn the_start_is_one_dim_line_and_so_is_an_end_without_success() {
    let home = Home::new();
    let mut terminal = Terminal::run(&home, &[], "echo said");
    assert_eq!(terminal.ends().code(), Some(0));
    assert_eq!(terminal.text(), "\x1b[2mrun/one\x1b[0m\r\nsaid\r\n");
    let mut command = home.command(&["run", "--id", "two", "--", "sh", "-c", "exit 4"]);
    command.env("NO_COLOR", "1");
    let mut terminal = Terminal::start(command);
    assert_eq!(terminal.ends().code(), Some(4));
    let text = terminal.text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert_eq!(lines[0], "run/two");
    assert!(
        lines[1].starts_with("run/two failed (run.failed.exit_nonzero): exited with 4"),
        "{text}"
    );
    let mut terminal = Terminal::start(home.command(&["run", "--quiet", "--", "sh", "-c", "exit 4"]));
    assert_eq!(terminal.ends().code(), Some(4));
    assert_eq!(terminal.text(), "");
}

#[test]
fn a_new_size_of_the_terminal_reaches_the_program() {
    let home = Home::new();
    let text = "trap 'stty size; kill $!; exit 0' WINCH; sleep 600 & echo ready; wait";
    let mut terminal = Terminal::run(&home, &[], text);
    terminal.sees("ready", 1);
    terminal.resize(40, 120);
    assert_eq!(terminal.ends().code(), Some(0));
    assert!(terminal.text().contains("40 120"), "{}", terminal.text());
}

#[test]
fn ctrl_c_on_a_pseudo_terminal_is_a_byte_for_the_program() {
    let home = Home::new();
    let text = "trap 'echo heard; exit 5' INT; echo ready; while :; do sleep 0.1; done";
    let mut terminal = Terminal::run(&home, &[], text);
    terminal.sees("ready", 1);
    terminal.types(b"\x03");
    assert_eq!(terminal.ends().code(), Some(5));
    assert!(terminal.text().contains("heard"), "{}", terminal.text());
    assert!(!terminal.text().contains("again"), "{}", terminal.text());
    assert_eq!(home.over("one")["reason"]["code"], "run.failed.exit_nonzero");
}

#[test]
fn the_modes_of_the_terminal_are_what_they_were_when_it_is_over() {
    let home = Home::new();
    let mut terminal = Terminal::run(&home, &[], "echo ready; read line; echo got-$line");
    let before = terminal.modes().local_modes;
    terminal.sees("ready", 1);
    assert_ne!(terminal.modes().local_modes, before, "raw while it runs");
    terminal.types(b"word\r");
    assert_eq!(terminal.ends().code(), Some(0));
    assert_eq!(terminal.modes().local_modes, before);
    assert!(terminal.text().contains("got-word"), "{}", terminal.text());
}

#[test]
fn the_key_to_detach_leaves_the_run_alive_and_the_terminal_as_it_was() {
    let home = Home::new();
    let mut terminal = Terminal::run(&home, &[], "echo ready; read line; echo got-$line");
    let before = terminal.modes().local_modes;
    terminal.sees("ready", 1);
    terminal.types(b"\x1cd");
    assert_eq!(terminal.ends().code(), Some(3));
    assert!(
        terminal.text().contains("runwarden logs -f run/one"),
        "{}",
        terminal.text()
    );
    assert_eq!(terminal.modes().local_modes, before);
    let shown = home.json(&["show", "one"]);
    assert_eq!(shown["status"], "running");
    assert!(lives(&shown["runtime"]["pid"].to_string()));
    drop(terminal);
    home.done(&["kill", "one"]);
}

#[test]
fn the_loss_of_the_terminal_stops_everything() {
    const DEAF: &str = r#"trap "" HUP; echo ready; sleep 600 & wait"#;
    let cases: [(&[&str], &str); 5] = [
        (&[], "echo ready; sleep 600"),
        (&[], "echo ready; exec yes"),
        (&[], DEAF),
        (&["--no-tty"], "echo ready; sleep 600"),
        (&["--no-tty"], DEAF),
    ];
    for (options, text) in cases {
        let home = Home::new();
        let mut terminal = Terminal::run(&home, options, text);
        terminal.sees("ready", 1);
        terminal.closed();
        let over = home.over("one");
        assert_eq!(
            (&over["status"], &over["reason"]["code"]),
            (&json!("cancelled"), &json!("run.cancelled.hangup"))
        );
        assert_eq!(over["fields"]["cause"], "hangup", "{options:?} {text}");
    }
}

#[test]
fn the_loss_of_the_terminal_detaches_when_that_was_asked_for() {
    for options in [&["--on-hangup", "detach"][..], &["--on-hangup", "detach", "--no-tty"]] {
        let home = Home::new();
        let mut terminal = Terminal::run(&home, options, "echo ready; exec sleep 600");
        terminal.sees("ready", 1);
        terminal.hangs_up();
        assert_eq!(terminal.closed().code(), Some(3), "{options:?}");
        let shown = home.json(&["show", "one"]);
        assert_eq!(shown["status"], "running", "{options:?}");
        assert!(lives(&shown["runtime"]["pid"].to_string()), "{options:?}");
        home.done(&["kill", "one"]);
    }
}

#[test]
fn three_ctrl_c_without_a_pseudo_terminal_tell_ask_and_kill() {
    let home = Home::new();
    let text = r#"trap "echo heard" INT; trap "" TERM; echo ready; while :; do sleep 0.1; done"#;
    let mut terminal = Terminal::run(&home, &["--no-tty", "--grace", "60s"], text);
    terminal.sees("ready", 1);
    terminal.types(b"\x03");
    terminal.sees("heard", 1);
    terminal.sees("Ctrl-C again", 1);
    assert_eq!(home.json(&["show", "one"])["status"], "running");
    terminal.types(b"\x03");
    let asked = || std::fs::read(home.of_run("one", "stop")).is_ok_and(|stop| has(&stop, b"operator:terminal"));
    until("a stop is asked for", asked);
    terminal.sees("heard", 2);
    terminal.types(b"\x03");
    assert_eq!(terminal.ends().code(), Some(137), "{}", terminal.text());
    let over = home.over("one");
    assert_eq!(
        (&over["status"], &over["reason"]["code"]),
        (&json!("cancelled"), &json!("run.cancelled.sigint"))
    );
    assert_eq!(home.exit_record("one")["stop"]["forced"], true);
}

fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn a_program_that_writes_without_end_does_not_keep_the_user_from_stopping_it() {
    let home = Home::new();
    let text = r#"trap "" INT; echo ready; while :; do echo more; done"#;
    // What it is ahead of us by is still shown when it has ended: more than this would take a busy machine its time.
    let mut terminal = Terminal::run(&home, &["--no-tty", "--log-limit", "1MiB"], text);
    terminal.sees("ready", 1);
    terminal.types(b"\x03");
    terminal.sees("Ctrl-C again", 1);
    terminal.types(b"\x03");
    assert_eq!(terminal.ends().code(), Some(143));
    assert_eq!(home.over("one")["reason"]["code"], "run.cancelled.sigint");
}

#[test]
fn a_ctrl_c_that_ends_the_program_is_the_program_s_own_end() {
    let home = Home::new();
    let mut terminal = Terminal::run(&home, &["--no-tty"], "echo ready; exec sleep 600");
    terminal.sees("ready", 1);
    terminal.types(b"\x03");
    assert_eq!(terminal.ends().code(), Some(130), "{}", terminal.text());
    assert_eq!(home.over("one")["fields"]["term_signal"], 2);
}

#[test]
fn ctrl_z_stops_program_and_command_alike_and_fg_continues_both() {
    let home = Home::new();
    let mut shell = Command::new("sh");
    shell.args(["-i", "-m"]).env_clear().current_dir(home.path("."));
    shell.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    shell
        .env("RUNWARDEN_HOME", home.home())
        .env("HOME", home.path("."))
        .env("PS1", "> ");
    let mut terminal = Terminal::start(shell);
    terminal.sees("> ", 1);
    let told = home.path("told");
    let line = format!(
        "{PROGRAM} run --id one --no-tty -- sh -c 'echo $$ > {}; read a; echo got-$a'\r",
        told.display()
    );
    terminal.types(line.as_bytes());
    let program = home.told("told");
    let shell = terminal.child.id();
    let command = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).expect("its children");
    let command = command.trim().to_owned();
    let both = |stopped: bool| {
        [&program, &command]
            .iter()
            .all(|pid| process(pid).is_some_and(|(state, _)| (state == 'T') == stopped))
    };
    terminal.types(b"\x1a");
    until("both are stopped", || both(true));
    terminal.types(b"fg\r");
    until("both go on", || both(false));
    terminal.types(b"word\r");
    terminal.sees("got-word", 1);
    terminal.types(b"exit\r");
    terminal.ends();
    assert_eq!(home.over("one")["status"], "completed");
}

#[test]
fn an_interrupt_to_the_command_itself_stops_what_has_a_pseudo_terminal_of_its_own() {
    let home = Home::new();
    let mut terminal = Terminal::run(&home, &[], "echo ready; exec sleep 600");
    terminal.sees("ready", 1);
    let command = Pid::from_child(&terminal.child);
    rustix::process::kill_process(command, Signal::INT).expect("our own child");
    assert_eq!(terminal.ends().code(), Some(143), "{}", terminal.text());
    assert!(!terminal.text().contains("passed on"), "{}", terminal.text());
    assert_eq!(home.over("one")["reason"]["code"], "run.cancelled.sigint");
}
