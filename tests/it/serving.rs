//! The service: one for a store, nothing lost whenever it dies, and nobody the worse for its being there or not.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Child;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{Answer, Home, answered, lives, opened, until};
use crate::notices::{sink, told};

/// A service of a home's store; it is told to stop when the test ends, and killed when it does not.
pub(crate) struct Served<'a> {
    home: &'a Home,
    child: Option<Child>,
    address: SocketAddr,
}

impl<'a> Served<'a> {
    /// Starts one, and waits until it says where it is.
    pub(crate) fn up(home: &'a Home) -> Self {
        Self::with(home, &[])
    }

    fn with(home: &'a Home, variables: &[(&str, &str)]) -> Self {
        let mut command = home.command(&["serve", "--listen", "127.0.0.1:0"]);
        let mut child = command
            .envs(variables.iter().copied())
            .spawn()
            .expect("the program starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("a pipe");
        BufReader::new(out).read_line(&mut line).expect("a line");
        let address = line.trim_end().strip_prefix("Serving on http://").map(str::parse);
        let Some(Ok(address)) = address else {
            panic!("it said {line:?}{}", answered(child, "serve".to_owned()).err)
        };
        Self {
            home,
            child: Some(child),
            address,
        }
    }

    fn pid(&self) -> Pid {
        let child = self.child.as_ref().expect("it is up");
        Pid::from_child(child)
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it is there");
    }

    fn ended(&mut self) -> Answer {
        answered(self.child.take().expect("it is up"), "serve".to_owned())
    }

    /// Tells it to stop; it must end well and say nothing.
    #[track_caller]
    pub(crate) fn stop(mut self) {
        self.signal(Signal::TERM);
        let answer = self.ended().exits(0);
        assert_eq!(answer.err, "");
        assert!(!self.home.home().join("serve.json").exists());
    }

    pub(crate) fn kill(mut self) {
        self.signal(Signal::KILL);
        assert_eq!(self.ended().code, -1);
    }

    /// Status and body of what is asked.
    fn asked(&self, path: &str, host: &str) -> (u16, String) {
        self.request(&format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n\r\n"))
    }

    fn request(&self, request: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a bound");
        stream.write_all(request.as_bytes()).expect("it takes a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers and closes");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.expect("a status"), body.to_owned())
    }

    pub(crate) fn health(&self) -> (u16, Value) {
        let (status, body) = self.asked("/healthz", "localhost");
        (status, serde_json::from_str(&body).expect("it is JSON"))
    }

    fn is_stopping(&self) -> bool {
        self.health().1["stopping"] == true
    }

    pub(crate) fn metric(&self, name: &str) -> f64 {
        let (status, text) = self.asked("/metrics", "127.0.0.1:7117");
        assert_eq!(status, 200, "{text}");
        assert!(text.ends_with("# EOF\n"), "{text}");
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value
            .and_then(|value| value.parse().ok())
            .unwrap_or_else(|| panic!("no {name}: {text}"))
    }
}

impl Drop for Served<'_> {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Ends something that is told to this file.
fn end_told(home: &Home, id: &str, notify: &str) {
    home.done(&["create", "session", "--id", id, "--notify", notify]);
    home.done(&["transition", id, "completed", "--reason", "run.completed.ok"]);
}

#[test]
fn it_delivers_what_others_end_and_they_leave_it_to_it() {
    let home = Home::new();
    let served = Served::up(&home);
    let file = home.path("heard");
    let parent = format!(r#"printf '%s\n' "$PPID" >> {}"#, home.path("by").display());
    end_told(&home, "one", &sink(&file));
    until("it is told", || told(&file).len() == 1);
    end_told(&home, "two", &json!(["sh", "-c", parent]).to_string());
    assert_eq!(home.told("by"), served.pid().as_raw_nonzero().to_string());
    let run = json!([
        "sh",
        "-c",
        format!("cat >> {}; echo >> {}", file.display(), file.display())
    ])
    .to_string();
    home.detach("three", &["--notify", &run, "--", "true"]);
    home.over("three");
    until("the end of a run is told", || {
        home.json(&["outbox", "ls"])
            .as_array()
            .is_some_and(|notices| notices.len() == 3 && notices.iter().all(|notice| notice["status"] == "delivered"))
    });
    assert_eq!(served.metric("runwarden_attempts_total{result=\"delivered\"}"), 3.0);
    served.stop();
}

#[test]
fn one_serves_a_store_and_the_next_is_told_who_does() {
    let home = Home::new();
    let served = Served::up(&home);
    let pid = served.pid().as_raw_nonzero().to_string();
    let refused = home
        .run(&["serve", "--listen", "127.0.0.1:0"])
        .exits(4)
        .hints("serve.json");
    assert!(refused.err.contains(&pid), "{}", refused.err);
    let presence = std::fs::read_to_string(home.home().join("serve.json")).expect("it says where it is");
    let presence: Value = serde_json::from_str(&presence).expect("JSON");
    assert_eq!(presence["address"], served.address.to_string());
    assert_eq!(presence["pid"].to_string(), pid);
    let mode = std::fs::metadata(home.home().join("serve.json"))
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let once = home.run(&["serve", "--once"]).exits(0);
    assert!(once.out.contains("A service is up"), "{}", once.out);
    served.stop();
    Served::up(&home).stop();
}

#[test]
fn a_stop_finishes_what_is_on_its_way_and_begins_nothing_new() {
    let home = Home::new();
    let served = Served::up(&home);
    let (began, gate) = (home.path("began"), home.gate("gate"));
    let slow = |id: &str| {
        let script = format!(
            "echo {id} >> {}; read x < {}; echo {id} >> {}",
            began.display(),
            gate.display(),
            home.path("done").display()
        );
        json!(["sh", "-c", script]).to_string()
    };
    end_told(&home, "first", &slow("first"));
    assert_eq!(home.told("began"), "first");
    served.signal(Signal::TERM);
    until("it is stopping", || served.is_stopping());
    end_told(&home, "second", &slow("second"));
    let mut served = served;
    drop(opened(&gate));
    let answer = served.ended().exits(0);
    assert_eq!(answer.err, "");
    assert_eq!(home.told("done"), "first");
    assert_eq!(home.told("began"), "first", "the second was not begun");
    let notices = home.json(&["outbox", "ls"]);
    let status = |id: &str| {
        let of = |notice: &&Value| {
            home.json(&["outbox", "show", notice["id"].as_str().unwrap_or_default()])["body"]
                .to_string()
                .contains(id)
        };
        notices
            .as_array()
            .and_then(|all| all.iter().find(of))
            .map(|notice| notice["status"].clone())
    };
    assert_eq!(status("first"), Some(json!("delivered")));
    assert_eq!(
        status("second"),
        Some(json!("pending")),
        "it is due, and whoever delivers next sends it"
    );
}

#[test]
fn told_twice_to_stop_it_ends_at_once() {
    let home = Home::new();
    let mut served = Served::up(&home);
    let gate = home.gate("gate");
    let script = format!(
        "echo $$ >> {}; read x < {}",
        home.path("began").display(),
        gate.display()
    );
    end_told(&home, "held", &json!(["sh", "-c", script]).to_string());
    let program = home.told("began");
    served.signal(Signal::TERM);
    until("it took the first", || served.is_stopping());
    served.signal(Signal::INT);
    served.ended().exits(3);
    until("the program that it delivered by ends with it", || !lives(&program));
    let notice = home.json(&["outbox", "ls"])[0].clone();
    assert_eq!(
        notice["status"], "delivering",
        "its claim lapses, and it is tried again: {notice}"
    );
}

#[test]
fn killed_at_any_step_of_a_delivery_it_sends_the_same_notice_again_when_it_is_back() {
    for point in ["deliver.claimed", "deliver.sent", "deliver.settled"] {
        let home = Home::new();
        let file = home.path("heard");
        let mut served = Served::with(&home, &[("RUNWARDEN_CRASH_AT", point)]);
        home.done(&["notify", "add", "ops", "--exec", &sink(&file), "--timeout", "1s"]);
        home.done(&["create", "session", "--id", "s"]);
        home.done(&["transition", "s", "completed", "--reason", "run.completed.ok"]);
        assert_eq!(served.ended().code, -1, "{point}");
        let id = home.json(&["outbox", "ls"])[0]["id"]
            .as_str()
            .expect("an id")
            .to_owned();
        let served = Served::up(&home);
        until("it is delivered", || {
            home.json(&["outbox", "show", &id])["status"] == "delivered"
        });
        let heard = told(&file);
        assert!(
            !heard.is_empty() && heard.iter().all(|(told, _)| *told == id),
            "{point}: {heard:?}"
        );
        assert!(
            heard.windows(2).all(|pair| pair[0] == pair[1]),
            "{point}: the same bytes"
        );
        served.stop();
    }
}

#[test]
fn killed_while_a_receiver_is_at_work_it_sends_the_same_notice_again() {
    let home = Home::new();
    let (began, gate) = (home.path("began"), home.gate("gate"));
    let script = format!(
        "echo \"$RUNWARDEN_DISPATCH_ID $RUNWARDEN_ATTEMPT_NUMBER\" >> {}; read x < {}",
        began.display(),
        gate.display()
    );
    let argv = json!(["sh", "-c", script]).to_string();
    let served = Served::up(&home);
    home.done(&["notify", "add", "ops", "--exec", &argv, "--timeout", "3s"]);
    home.done(&["create", "session", "--id", "s"]);
    home.done(&["transition", "s", "completed", "--reason", "run.completed.ok"]);
    home.told("began");
    served.kill();
    let id = home.json(&["outbox", "ls"])[0]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let _open = opened(&gate);
    assert!(home.home().join("serve.json").exists(), "nobody was there to remove it");
    let served = Served::up(&home);
    until("it is delivered", || {
        home.json(&["outbox", "show", &id])["status"] == "delivered"
    });
    assert_eq!(home.told("began"), format!("{id} 1\n{id} 2"));
    served.stop();
}

#[test]
fn it_says_how_it_is_and_what_it_did_to_localhost_alone() {
    let home = Home::new();
    let served = Served::up(&home);
    until("all parts are at work", || served.health().0 == 200);
    let (_, health) = served.health();
    assert_eq!((&health["ok"], &health["store"]["ok"]), (&json!(true), &json!(true)));
    for part in ["deliverer", "finisher", "reaper", "retention", "upkeep"] {
        assert_eq!(health["parts"][part]["ok"], true, "{health}");
    }
    end_told(&home, "bad", &json!(["false"]).to_string());
    let pending = "runwarden_dispatches{status=\"pending\"}";
    until("it failed once", || {
        served.metric("runwarden_attempts_total{result=\"retried\"}") == 1.0
    });
    assert_eq!(served.metric(pending), 1.0);
    for (name, value) in [
        ("owed_plans", 0.0),
        ("destinations_failing", 1.0),
        ("destinations_paused", 0.0),
    ] {
        assert_eq!(served.metric(&format!("runwarden_{name}")), value, "{name}");
    }
    assert!(served.metric("runwarden_store_log_bytes") >= 0.0);
    assert_eq!(served.metric("runwarden_part_up{part=\"reaper\"}"), 1.0);
    let (_, text) = served.asked("/metrics", "localhost");
    assert!(
        text.contains(&format!(
            "runwarden_build_info{{version=\"{}\"}} 1",
            env!("CARGO_PKG_VERSION")
        )),
        "{text}"
    );
    assert_eq!(served.asked("/", "localhost").0, 404);
    assert_eq!(served.asked("/metrics", "evil.example").0, 403);
    assert_eq!(
        served.request("GET /metrics HTTP/1.0\r\n\r\n").0,
        403,
        "nobody is named"
    );
    let post = "POST /metrics HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(served.request(post).0, 405);
    served.stop();
}

#[test]
fn a_service_with_nothing_to_do_looks_once_in_a_second_and_no_more() {
    let home = Home::new();
    let served = Served::up(&home);
    let looks = || served.metric("runwarden_deliverer_looks_total");
    // What happens at the start wakes it; afterwards nobody does.
    let mut before = (looks(), std::time::Instant::now());
    until("it looked four times", || looks() >= before.0 + 1.0);
    before = (looks(), std::time::Instant::now());
    until("it looked four times more", || looks() >= before.0 + 4.0);
    let seconds = before.1.elapsed().as_secs_f64();
    let looked = looks() - before.0;
    assert!(looked <= seconds + 1.5, "{looked} looks in {seconds} s");
    served.stop();
}

#[test]
fn a_run_whose_shim_was_killed_is_found_by_a_service_that_starts() {
    let home = Home::new();
    let gate = home.gate("gate");
    home.detach(
        "r",
        &["--", "sh", "-c", &format!("read x < {}; exit 5", gate.display())],
    );
    let shim = home.json(&["show", "r"])["runtime"]["shim_pid"].as_i64();
    let shim = shim.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    let shim = shim.expect("the shim's pid is shown");
    kill_process(shim, Signal::KILL).expect("it is there");
    until("it is gone", || !lives(&shim.as_raw_nonzero().to_string()));
    let served = Served::up(&home);
    until("it is taken over", || served.metric("runwarden_repairs_total") >= 1.0);
    drop(opened(&gate));
    assert_eq!(home.over("r")["fields"]["exit_code"], 5);
    served.stop();
}

/// Stops the service at a moment when it does not hold the store: nobody could write until it is continued.
fn stop_between_writes(home: &Home, served: &Served) {
    until("it is stopped and holds nothing", || {
        served.signal(Signal::STOP);
        let store = rusqlite::Connection::open(home.home().join("state.db")).expect("the store is there");
        store.busy_timeout(std::time::Duration::ZERO).expect("it takes a limit");
        let is_free = store.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_ok();
        if !is_free {
            served.signal(Signal::CONT);
        }
        is_free
    });
}

#[test]
fn ends_are_left_to_a_service_that_answers_and_recorded_without_it_when_it_does_not() {
    let home = Home::new();
    let served = Served::up(&home);
    until("all parts are at work", || served.health().0 == 200);
    let ends = || served.metric("runwarden_ends_total");
    for id in ["one", "two"] {
        home.detach(id, &["--", "sh", "-c", "exit 4"]);
        assert_eq!(home.over(id)["fields"]["exit_code"], 4);
    }
    until("both ends were left to it", || ends() >= 2.0);
    assert_eq!(ends(), 2.0);
    stop_between_writes(&home, &served);
    let gate = home.gate("gate");
    home.detach(
        "three",
        &["--", "sh", "-c", &format!("read x < {}; exit 6", gate.display())],
    );
    drop(opened(&gate));
    // Nobody reads the run meanwhile, who would record the end: the row is looked at alone.
    let store = crate::harness::library(&home.home(), runwarden_host::store::OpenMode::ReadOnly);
    until("its own command recorded it", || {
        let entity = store.store().load("three").expect("the store is read");
        entity.is_some_and(|entity| entity.terminal)
    });
    served.signal(Signal::CONT);
    assert_eq!(home.over("three")["fields"]["exit_code"], 6);
    assert_eq!(ends(), 2.0);
    served.stop();
}

#[test]
fn a_pass_of_everything_is_made_without_a_service() {
    let home = Home::new();
    assert_eq!(home.json(&["serve", "--once"])["served"], false);
    let file = home.path("heard");
    let served = Served::up(&home);
    let gate = home.gate("gate");
    let script = format!("read x < {}", gate.display());
    end_told(&home, "held", &json!(["sh", "-c", script]).to_string());
    until("it is on its way", || {
        home.json(&["outbox", "ls"])[0]["status"] == "delivering"
    });
    served.signal(Signal::TERM);
    until("it is stopping", || served.is_stopping());
    end_told(&home, "late", &sink(&file));
    let mut served = served;
    drop(opened(&gate));
    served.ended().exits(0);
    let pass = home.json(&["serve", "--once"]);
    assert_eq!(
        (&pass["served"], &pass["delivered"]["delivered"]),
        (&json!(false), &json!(1))
    );
    assert_eq!(told(&file).len(), 1);
    assert_eq!(pass["problems"], json!([]));
}

#[test]
fn an_address_that_others_reach_is_refused_and_a_wrong_one_is_named() {
    let home = Home::new();
    for word in ["0.0.0.0:7117", "10.0.0.1:1", "127.0.0.1", "127.0.0.1:99999", "nonsense"] {
        let answer = home
            .run(&["serve", "--listen", word])
            .exits(64)
            .hints("runwarden serve --help");
        assert!(answer.err.contains(&format!("'{word}'")), "{}", answer.err);
    }
    home.run(&["serve", "--socket", "x"]).exits(64);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    home.run(&["serve", "--listen", &address])
        .exits(74)
        .hints("--listen 127.0.0.1:0");
}

#[test]
fn the_unit_is_written_once_enabled_and_started() {
    let home = Home::new();
    let programs = home.path("bin");
    std::fs::create_dir(&programs).expect("a directory");
    let (asked, systemctl) = (home.path("asked"), programs.join("systemctl"));
    std::fs::write(&systemctl, format!("#!/bin/sh\necho \"$@\" >> {}\n", asked.display())).expect("a program");
    std::fs::set_permissions(&systemctl, std::fs::Permissions::from_mode(0o700)).expect("a mode");
    let path = format!("{}:/usr/bin:/bin", programs.display());
    let install = |path: &str| {
        home.run_with(
            &["serve", "--install", "--listen", "127.0.0.1:7200", "--json"],
            &[("PATH", path)],
        )
    };
    let first = install(&path).exits(0).document();
    assert_eq!((&first["written"], &first["enabled"]), (&json!(true), &json!(true)));
    let unit = home.path(".config/systemd/user/runwarden.service");
    assert_eq!(first["unit"], json!(unit));
    let text = std::fs::read_to_string(&unit).expect("the unit");
    let command = format!("--home {} serve --listen 127.0.0.1:7200", home.home().display());
    assert!(
        text.contains(&command) && text.contains("\nKillMode=process\n"),
        "{text}"
    );
    let said = || std::fs::read_to_string(&asked).unwrap_or_default();
    assert_eq!(
        said(),
        "--user daemon-reload\n--user enable --now runwarden.service\n--user restart runwarden.service\n"
    );
    assert_eq!(install(&path).exits(0).document()["written"], false);
    assert_eq!(said().lines().count(), 5, "one that is up as it should be goes on");
    let without = install("/nonexistent").exits(1).document();
    assert_eq!(
        (&without["written"], &without["enabled"]),
        (&json!(false), &json!(false))
    );
    let told = home
        .run_with(&["serve", "--install"], &[("PATH", "/nonexistent")])
        .exits(1);
    assert!(
        told.out.contains("systemctl --user enable --now runwarden"),
        "{}",
        told.out
    );
    assert!(!home.home().exists(), "the store is made by the service");
}
