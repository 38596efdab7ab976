//! Who is told of an end: settings, bindings, options of a run, and the commands about them. Nothing is sent here.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::harness::{Answer, Home};

impl Home {
    /// Writes the project's settings, for this user alone.
    fn project(&self, text: &str) {
        let directory = self.path(".runwarden");
        std::fs::create_dir_all(&directory).expect("a directory of the test");
        let file = directory.join("settings.toml");
        std::fs::write(&file, text).expect("a file of the test");
        self.admit(0o755, 0o644);
    }

    /// Sets who may write the project's settings.
    fn admit(&self, directory: u32, file: u32) {
        let place = self.path(".runwarden");
        for (path, mode) in [(place.clone(), directory), (place.join("settings.toml"), file)] {
            std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("it belongs to the test");
        }
    }

    /// Writes the user's settings.
    fn global(&self, text: &str) {
        let directory = self.path(".config/runwarden");
        std::fs::create_dir_all(&directory).expect("a directory of the test");
        std::fs::write(directory.join("settings.toml"), text).expect("a file of the test");
    }

    /// What a session that is created now keeps.
    fn kept(&self, options: &[&str]) -> Value {
        self.json(&[&["create", "session"], options].concat())["notify"].clone()
    }
}

/// Names of the handlers that are told, with where each is from.
fn told(settings: &Value) -> String {
    let handlers = settings["handlers"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |handler: &Value, name: &str| handler[name].as_str().unwrap_or_default().to_owned();
    let names = handlers
        .iter()
        .map(|handler| format!("{} {}", text(handler, "name"), text(handler, "layer")));
    names.collect::<Vec<_>>().join(", ")
}

/// The codes of what was refused.
fn codes(settings: &Value) -> Vec<&str> {
    let told = settings["diagnostics"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    told.iter().filter_map(|told| told["code"].as_str()).collect()
}

#[track_caller]
fn warns(answer: &Answer, words: &str) {
    let lines: Vec<&str> = answer.err.lines().collect();
    assert!(
        matches!(lines.as_slice(), [one] if one.starts_with("warning: ") && one.contains(words)),
        "{}",
        answer.err
    );
}

#[test]
fn with_nothing_to_say_an_entity_keeps_nothing() {
    let home = Home::new();
    assert_eq!(home.kept(&[]), Value::Null);
    assert_eq!(home.kept(&["--no-notify"]), Value::Null);
    assert_eq!(home.json(&["notify", "ls"]), json!([]));
}

#[test]
fn an_entity_keeps_what_held_when_it_was_created() {
    let home = Home::new();
    home.global("[notify.handlers.desk]\nargv = [\"notify-send\", \"{payload}\"]");
    let reference = home.done(&["create", "session"]);
    home.global("[notify.handlers.desk]\nargv = [\"other\"]\n[notify.handlers.more]\nargv = [\"x\"]");
    let shown = home.json(&["notify", "show", "--ref", &reference]);
    assert_eq!(told(&shown), "desk global");
    let destination = &shown["handlers"][0]["destinations"]["exec"];
    assert_eq!(destination["argv"], json!(["notify-send", "{payload}"]));
    assert_eq!(destination["timeout_ms"], 10_000);
    let digest = shown["handlers"][0]["digest"].as_str().unwrap_or_default();
    assert_eq!(digest.len(), 64, "it is pinned");
    assert_eq!(told(&home.json(&["notify", "show"])), "desk global, more global");
}

#[test]
fn project_comes_before_user_and_user_before_store() {
    let home = Home::new();
    for name in ["a", "b", "c"] {
        home.done(&["notify", "add", name, "--exec", "store"]);
    }
    home.global("[notify.handlers.a]\nargv = [\"global\"]\n[notify.handlers.b]\nstate = \"disabled\"");
    home.project("[notify.handlers.a]\nstate = \"unset\"\n[notify.handlers.c]\nargv = [\"project\"]");
    assert_eq!(told(&home.kept(&[])), "a global, c project");
    let layers = &home.json(&["notify", "show"])["layers"];
    let states = json!({"project": "unset", "global": "disabled", "store": "configured"});
    assert_eq!(layers["b"], states);
    assert_eq!(told(&home.kept(&["--notify", "b"])), "a global, b store, c project");
    assert_eq!(told(&home.kept(&["--no-notify"])), "");
    assert_eq!(
        told(&home.kept(&["--notify", "[\"x\"]"])),
        "a global, c project, run-1 run"
    );
}

#[test]
fn settings_of_a_project_are_found_from_below() {
    let home = Home::new();
    home.project("[notify.handlers.a]\nargv = [\"./tell\"]");
    let below = home.path("src/deep");
    std::fs::create_dir_all(&below).expect("a directory of the test");
    let mut command = home.command(&["notify", "ls", "--json"]);
    let output = command.current_dir(below).output().expect("the program starts");
    let handlers: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let program = handlers[0]["destinations"]["exec"]["argv"][0]
        .as_str()
        .unwrap_or_default();
    assert!(
        program.starts_with('/') && program.ends_with("/.runwarden/tell"),
        "{program}"
    );
}

#[test]
fn settings_that_others_can_write_are_ignored_and_said_to_be() {
    let home = Home::new();
    home.project("[notify.handlers.a]\nargv = [\"evil\"]");
    home.global("[notify.handlers.a]\nargv = [\"good\"]");
    for (directory, file) in [(0o777, 0o644), (0o775, 0o644), (0o755, 0o666), (0o755, 0o664)] {
        home.admit(directory, file);
        let answer = home.run(&["create", "session", "--json"]).exits(0);
        warns(&answer, "is writable by others");
        let kept = &answer.document()["notify"];
        assert_eq!(told(kept), "a global");
        assert_eq!(codes(kept), ["settings_not_trusted"]);
    }
    home.admit(0o755, 0o644);
    assert_eq!(told(&home.kept(&[])), "a project");
}

#[test]
fn what_is_malformed_is_off_and_never_falls_through() {
    let home = Home::new();
    home.global("[notify.handlers.a]\nargv = [\"global\"]\n[notify.handlers.b]\nargv = [\"global\"]");
    home.project("[notify.handlers.a]\ncommand = \"mail me | tee\"");
    let answer = home.run(&["run", "--detach", "--json", "--", "true"]).exits(0);
    warns(&answer, "handler a is off");
    let run = answer.document();
    assert_eq!(
        (told(&run["notify"]), codes(&run["notify"])),
        ("b global".to_owned(), vec!["command_requires_shell"])
    );
    home.over(run["id"].as_str().unwrap_or_default());
    home.project("[notify.handlers.a\n");
    let kept = home.kept(&[]);
    assert_eq!((told(&kept).as_str(), codes(&kept)), ("", vec!["settings_load_failed"]));
    home.project("[notify.handlers.a]\ncomponent = \"webhook@7\"\n[notify.handlers.a.destinations.x]\ntransport = \"file\"\npath = \"/x\"");
    let kept = home.kept(&[]);
    assert_eq!(
        (told(&kept).as_str(), codes(&kept)),
        ("b global", vec!["component_unknown"])
    );
    home.project("[notfy]\n");
    let kept = home.kept(&[]);
    assert_eq!(
        (told(&kept).as_str(), codes(&kept)),
        ("a global, b global", vec!["settings_have_unknown_keys"])
    );
    assert_eq!(home.run(&["run", "--quiet", "--", "true"]).exits(0).err, "");
}

#[test]
fn a_wrong_option_makes_nothing() {
    let home = Home::new();
    for spec in ["", "a b", "[]", "[1]", "[\"a\"", "{}", "[\"a\\u0000\"]"] {
        home.run(&["create", "session", "--notify", spec])
            .exits(64)
            .hints("runwarden create --help");
    }
    home.run(&["create", "session", "--notify", "a", "--no-notify"])
        .exits(64);
    home.run(&["create", "session", "--id", "s-1", "--notify", "nobody"])
        .exits(64)
        .hints("runwarden notify show");
    home.run(&["run", "--notify", "nobody", "--", "true"]).exits(125);
    home.global("[notify.handlers.a]\nargv = [\"x\"]\nconfig = { colour = 1 }\n[notify.handlers.b]\nargv = 5");
    for name in ["a", "b"] {
        let said = home.run(&["create", "session", "--notify", name]).exits(64).err;
        assert!(said.contains("colour") || said.contains("argv"), "{said}");
    }
    assert_eq!(home.json(&["ls", "--all"]), json!([]));
}

#[test]
fn a_binding_is_judged_whole_before_it_is_written() {
    let home = Home::new();
    let refused: [(&[&str], &str); 9] = [
        (&["--exec", "a; b"], "shell"),
        (&["--exec", ""], "no words"),
        (&["--url", "http://example.org"], "allow_private"),
        (&["--url", "https://u:p@example.org"], "password"),
        (&["--component", "webhook"], "no destination"),
        (&["--component", "nothing", "--exec", "a"], "policy ls"),
        (&["--component", "exec", "--file", "x"], "reached by file"),
        (
            &["--exec", "a", "--config", "wants_acknowledgment=true"],
            "wants_acknowledgement",
        ),
        (&["--exec", "a", "--kinds", "team"], "makes no events"),
    ];
    for (options, words) in refused {
        let answer = home.run(&[&["notify", "add", "x"], options].concat()).exits(64);
        assert!(answer.err.contains(words), "{options:?}: {}", answer.err);
    }
    home.run(&["notify", "add", "a/b", "--exec", "a"]).exits(64);
    home.run(&["notify", "add", "x"]).exits(64);
    assert_eq!(home.json(&["notify", "ls"]), json!([]));
}

#[test]
fn a_binding_is_audited_and_taken_away() {
    let home = Home::new();
    let file = home.path("ends.jsonl");
    let bound = home.json(&[
        "notify",
        "add",
        "journal",
        "--file",
        "ends.jsonl",
        "--kinds",
        "runs,session",
        "--timeout",
        "2s",
    ]);
    assert_eq!(bound["component"], "file@0.1.0");
    assert_eq!(bound["filter"], json!({"kinds": ["run", "session"]}));
    let path = bound["destinations"]["file"]["path"].as_str().unwrap_or_default();
    assert!(path.starts_with('/') && path.ends_with("/ends.jsonl"), "{path}");
    assert_eq!(told(&home.kept(&[])), "journal store");
    home.done(&["notify", "rm", "journal"]);
    home.run(&["notify", "rm", "journal"])
        .exits(2)
        .hints("runwarden notify ls");
    assert_eq!(home.kept(&[]), Value::Null);
    let audit = home.json(&["history", "--admin"]);
    let actions: Vec<&str> = audit
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|row| row["action"].as_str())
        .collect();
    let bindings: Vec<&&str> = actions.iter().filter(|action| action.starts_with("notify")).collect();
    assert_eq!(bindings, [&"notify_bound", &"notify_unbound"]);
    assert!(!file.exists(), "nothing is sent");
}

#[test]
fn a_plan_is_shown_and_nothing_is_sent() {
    let home = Home::new();
    // It ends before anybody is bound: what is shown is what would be sent, and nothing ever is.
    home.run(&["run", "--id", "r-1", "--", "sh", "-c", "exit 3"]).exits(3);
    home.run(&["run", "--id", "r-2", "--", "true"]).exits(0);
    home.done(&[
        "notify",
        "add",
        "ops",
        "--url",
        "https://example.org/hooks",
        "--secret-env",
        "OPS_SECRET",
        "--statuses",
        "failed",
        "--config",
        "wants_acknowledgement=true",
    ]);
    home.done(&["notify", "add", "journal", "--file", "ends.jsonl"]);
    let planned = home.run_with(
        &["notify", "test", "ops", "--ref", "r-1", "--json"],
        &[("OPS_SECRET", "s3cr3t")],
    );
    let planned = planned.exits(0);
    assert!(!planned.out.contains("s3cr3t"), "{}", planned.out);
    let document = planned.document();
    let dispatch = &document["dispatches"][0];
    assert_eq!(
        (&dispatch["destination"], &dispatch["wants_acknowledgement"]),
        (&json!("webhook"), &json!(true))
    );
    assert_eq!(dispatch["headers"]["webhook-signature"], "v1,<with $OPS_SECRET>");
    let body: Value = serde_json::from_str(dispatch["body"].as_str().unwrap_or_default()).expect("the body is JSON");
    assert_eq!(
        (&body["terminal_status"], &body["entity"]["id"]),
        (&json!("failed"), &json!("r-1"))
    );
    assert_eq!(body["event_id"], document["event_id"]);
    let said = home.done(&["notify", "test", "journal", "--ref", "r-1"]);
    assert!(
        said.starts_with("file  file /") && said.ends_with("Nothing was sent."),
        "{said}"
    );
    let document = home.json(&["notify", "test", "ops", "--ref", "r-2"]);
    assert_eq!(
        (&document["admitted"], &document["dispatches"]),
        (&json!(false), &json!([]))
    );
    assert!(!home.path("ends.jsonl").exists());
    home.run(&["notify", "test", "nobody", "--ref", "r-1"])
        .exits(2)
        .hints("notify");
    home.done(&["create", "session", "--id", "s-1"]);
    home.run(&["notify", "test", "ops", "--ref", "s-1"])
        .exits(2)
        .hints("--sample");
    home.run(&["notify", "test", "ops"]).exits(64);
}

#[test]
fn tags_that_the_settings_name_are_let_out_and_no_others() {
    let home = Home::new();
    home.global("[notify]\nmetadata_tags = [\"team\", \"absent\"]\n[notify.handlers.a]\nargv = [\"true\"]");
    for (id, arguments) in [
        ("s-1", &["create", "session", "--status", "running", "--id", "s-1"][..]),
        ("s-2", &["create", "play", "--status", "pending", "--id", "s-2"]),
    ] {
        home.done(&[arguments, &["--tag", "team=core", "--tag", "private=x"]].concat());
        let (status, code) = if id == "s-1" {
            ("completed", "run.completed.ok")
        } else {
            ("merged", "play.merged.ok")
        };
        home.done(&["transition", id, status, "--reason", code]);
        let planned = home.json(&["notify", "test", "a", "--ref", id]);
        let body: Value =
            serde_json::from_str(planned["dispatches"][0]["body"].as_str().unwrap_or_default()).expect("JSON");
        assert_eq!(body["metadata"], json!({"team": "core"}), "{id}");
    }
}

#[test]
fn what_is_shown_fits_a_narrow_page() {
    let home = Home::new();
    home.done(&[
        "notify",
        "add",
        "ops",
        "--url",
        "https://example.org/hooks",
        "--kinds",
        "run",
        "--statuses",
        "failed",
    ]);
    home.done(&["notify", "add", "desk", "--exec", "notify-send {payload}"]);
    home.global("[notify]\nmetadata_tags = [\"team\"]\n[notify.handlers.off]\nstate = \"disabled\"");
    for arguments in [&["notify", "ls"][..], &["notify", "show"]] {
        let wide = home.run_with(arguments, &[("COLUMNS", "200")]).exits(0).out;
        assert!(
            wide.contains("desk") && wide.contains("https://example.org/hooks"),
            "{wide}"
        );
        let narrow = home.run_with(arguments, &[("COLUMNS", "40")]).exits(0).out;
        let longest = narrow
            .lines()
            .filter(|line| !line.contains("/settings.toml"))
            .map(|line| line.chars().count());
        assert!(longest.max() <= Some(40), "{narrow}");
    }
}

#[test]
fn the_settings_of_the_guide_hold_as_they_are_written() {
    let guide = include_str!("../../docs/notifications.md");
    let block = guide
        .split("```toml\n[notify]\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    let home = Home::new();
    home.project(&format!("[notify]\n{}", block.expect("the guide shows settings")));
    home.done(&["notify", "add", "loud", "--exec", "true"]);
    let answer = home.run(&["notify", "show", "--json"]).exits(0);
    assert_eq!(answer.err, "");
    let settings = answer.document();
    assert_eq!(
        (told(&settings).as_str(), codes(&settings)),
        ("local project, ops project", Vec::new())
    );
    assert_eq!(settings["metadata_tags"], json!(["team", "branch"]));
    let shown = home.done(&["show", &home.done(&["create", "session"])]);
    assert!(shown.contains("told       local, ops\n"), "{shown}");
}

#[test]
fn an_entity_shows_whom_it_tells_and_what_was_refused() {
    let home = Home::new();
    home.project("[notify.handlers.a]\nargv = [\"true\"]\n[notify.handlers.b]\nargv = 5");
    let made = home.run(&["create", "session", "--id", "s-1"]).exits(0);
    warns(&made, "handler b is off");
    let shown = home.done(&["show", "s-1"]);
    assert!(
        shown.contains("told       a; 1 refused: `runwarden notify show --ref s-1`\n"),
        "{shown}"
    );
}
