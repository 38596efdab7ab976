//! policy: listing, drawing, installing, activating, rolling back.

use runwarden_test_guests::{Mode, hostile_handler};
use serde_json::{Value, json};

use crate::harness::{Home, host};

const KINDS: [&str; 9] = [
    "run",
    "session",
    "invocation",
    "show",
    "play",
    "team",
    "schedule_run",
    "schedule_run@1",
    "dispatch",
];

const HANDLERS: [&str; 3] = ["exec", "webhook", "file"];

#[test]
fn the_policies_that_ship_are_there_on_a_new_home() {
    let home = Home::new();
    let listing = home.json(&["policy", "ls"]);
    let rows = listing.as_array().expect("an array");
    assert_eq!(rows.len(), KINDS.len() + HANDLERS.len());
    let active: Vec<&Value> = rows.iter().filter(|row| row["active"] == json!(true)).collect();
    assert_eq!(active.len(), 8, "one for each kind");
    assert!(
        rows.iter().all(|row| row["source"] == "bundled" && row["in_use"] == 0),
        "{listing}"
    );
    assert!(
        active
            .iter()
            .any(|row| row["kind"] == "schedule_run" && row["version"] == "2.0.0")
    );
}

#[test]
fn every_policy_is_drawn_in_every_form() {
    let home = Home::new();
    for kind in KINDS {
        let descriptor = home.json(&["policy", "show", kind])["descriptor"].clone();
        let statuses = descriptor["statuses"].as_array().expect("statuses");
        for (form, begins) in [
            ("svg", "<?xml"),
            ("dot", "digraph"),
            ("mermaid", "---\ntitle"),
            ("text", ""),
            ("matrix", ""),
        ] {
            let drawing = home.done(&["policy", "show", kind, "--as", form]);
            assert!(drawing.starts_with(begins), "{kind} {form}: {drawing}");
            for status in statuses {
                let name = status["name"].as_str().expect("a name");
                assert!(drawing.contains(name), "{kind} {form}: {name}");
            }
        }
    }
}

#[test]
fn drawings_mark_what_matters() {
    let home = Home::new();
    let drawn = |form: &str| home.done(&["policy", "show", "dispatch", "--as", form]);
    insta::assert_snapshot!("dispatch_dot", drawn("dot"));
    insta::assert_snapshot!("dispatch_mermaid", drawn("mermaid"));
    let svg = drawn("svg");
    for class in [
        "class=\"status initial\"",
        "class=\"status terminal\"",
        "class=\"status terminal success\"",
        "class=\"edge restricted\"",
    ] {
        assert!(svg.contains(class), "{class}: {svg}");
    }
    assert_eq!(
        svg.matches("class=\"edge").count(),
        svg.matches("<path").count(),
        "every edge has a class"
    );
    home.done(&["create", "play", "--id", "p-1"]);
    assert!(home.done(&["policy", "show", "--ref", "p-1"]).contains("* pending"));
    assert!(
        home.done(&["policy", "show", "--ref", "p-1", "--as", "mermaid"])
            .contains("class s0 present")
    );
}

#[test]
fn a_matrix_has_a_cell_for_every_ordered_pair() {
    let home = Home::new();
    for kind in KINDS {
        let matrix = home.json(&["policy", "matrix", kind]);
        let (statuses, cells) = (
            matrix["statuses"].as_array().expect("some"),
            matrix["cells"].as_array().expect("some"),
        );
        assert_eq!(cells.len(), statuses.len() * statuses.len(), "{kind}");
        assert_eq!(matrix, home.json(&["policy", "show", kind, "--as", "matrix"]));
    }
    let dispatch = home.json(&["policy", "matrix", "dispatch"]);
    let cell = |from: &str, to: &str| -> Value {
        let cells = dispatch["cells"].as_array().expect("some");
        cells
            .iter()
            .find(|cell| cell["from"] == from && cell["to"] == to)
            .expect("a cell")
            .clone()
    };
    assert_eq!(
        cell("dead_letter", "pending"),
        json!({"from": "dead_letter", "to": "pending", "result": "allowed", "terminal_exit": true, "actors": ["operator"],
               "required_patch": ["attempt", "next_attempt_at", "last_error"], "required_guards": [], "guarded": false})
    );
    assert_eq!(cell("acked", "pending")["result"], "rejected");
    assert_eq!(cell("acked", "acked")["result"], "same_status");
    insta::assert_snapshot!("matrix_of_dispatch", home.done(&["policy", "matrix", "dispatch"]));
    let narrow = home
        .run_with(&["policy", "matrix", "play"], &[("COLUMNS", "40")])
        .exits(0)
        .out;
    assert!(narrow.contains("pending → prepared"), "{narrow}");
    assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
}

#[test]
fn a_word_that_is_no_policy_is_told_what_there_is() {
    let home = Home::new();
    home.run(&["policy", "show", "plai"]).exits(2).hints("play");
    home.run(&["policy", "show", "play@9"]).exits(2).hints("play@1.0.0");
    home.run(&["policy", "matrix", "nokind"]).exits(2);
    home.run(&["policy", "rollback", "nokind"]).exits(2);
    home.run(&["policy", "show"]).exits(64);
}

#[test]
fn what_is_no_component_is_65_with_every_problem_and_changes_nothing() {
    let home = Home::new();
    let before = home.json(&["policy", "ls"]);
    let file = |name: &str, bytes: &[u8]| -> String {
        let path = home.path(name);
        std::fs::write(&path, bytes).expect("a file");
        path.to_string_lossy().into_owned()
    };
    let core = wat::parse_str("(module)").expect("a module");
    let empty = wat::parse_str("(component)").expect("a component");
    for (path, words) in [
        (file("text.wasm", b"hello"), "header"),
        (file("core.wasm", &core), "core module"),
        (file("empty.wasm", &empty), "exports"),
        (home.path("absent.wasm").to_string_lossy().into_owned(), "cannot read"),
    ] {
        for command in ["install", "show"] {
            let answer = home.run(&["policy", command, &path]).exits(65);
            assert!(answer.err.contains(words), "{command} {path}: {}", answer.err);
        }
    }
    assert_eq!(home.json(&["policy", "ls"]), before);
}

#[test]
fn a_policy_is_installed_put_in_force_and_rolled_back() {
    let home = Home::new();
    let shipped = home.json(&["policy", "show", "schedule_run"])["digest"].clone();
    let older = home.json(&["policy", "show", "schedule_run@1"])["digest"].clone();
    let pinned = home.json(&["create", "schedule_run", "--id", "before"]);
    assert_eq!(pinned["policy"]["digest"], shipped);
    home.run(&["policy", "activate", "schedule_run@1"]).exits(64);
    let active = home.json(&[
        "policy",
        "activate",
        "schedule_run@1",
        "--reason",
        "workers are not ready",
    ]);
    assert_eq!(active["digest"], older);
    assert_eq!(home.json(&["create", "schedule_run"])["policy"]["digest"], older);
    assert_eq!(
        home.json(&["show", "before"])["policy"]["digest"],
        shipped,
        "a pin stays"
    );
    assert_eq!(home.json(&["policy", "rollback", "schedule_run"])["digest"], shipped);
    assert_eq!(
        home.json(&["policy", "activate", "--previous", "schedule_run", "--reason", "again"])["digest"],
        older
    );
    home.run(&["policy", "rollback", "play"]).exits(64).hints("policy ls");
    let digest = shipped.as_str().expect("text");
    let kept = home.run(&["policy", "rm", digest]).exits(4);
    assert!(
        kept.err.contains("entities are pinned to it: 1 live, 0 ended"),
        "{}",
        kept.err
    );
    kept.hints("policy migrate schedule_run --to V");
    home.run(&["policy", "rm", older.as_str().expect("text")])
        .exits(4)
        .hints("policy activate");
    home.run(&["policy", "rm", "00000000"]).exits(2);
    let actions = home.json(&["history", "--admin"]);
    let activated = actions
        .as_array()
        .expect("an array")
        .iter()
        .filter(|e| e["action"] == "policy_activated");
    assert_eq!(activated.count(), 3);
}

#[test]
fn a_component_of_the_store_can_be_installed_elsewhere() {
    let home = Home::new();
    let digest = home.json(&["policy", "show", "team"])["digest"]
        .as_str()
        .expect("text")
        .to_owned();
    let bytes = host(&home.home())
        .store()
        .component_bytes(&digest)
        .expect("the store is read")
        .expect("it is there");
    let path = home.path("team.wasm");
    std::fs::write(&path, bytes).expect("a file");
    let path = path.to_string_lossy();
    assert!(home.done(&["policy", "show", &path]).contains("kind      team"));
    let installed = home.json(&["policy", "install", &path, "--activate", "--reason", "to see"]);
    assert_eq!(
        (&installed["was_present"], &installed["activated"]),
        (&json!(true), &json!(true))
    );
}

#[test]
fn the_handlers_that_ship_are_listed_and_shown_and_are_no_kind_of_entity() {
    let home = Home::new();
    let listing = home.json(&["policy", "ls"]);
    let rows: Vec<&Value> = listing
        .as_array()
        .expect("an array")
        .iter()
        .filter(|row| row["kind"] == "handler")
        .collect();
    let mut names: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["exec", "file", "webhook"]);
    assert!(
        rows.iter().all(|row| row["active"] == json!(false)),
        "a handler is bound, never in force: {listing}"
    );
    for name in HANDLERS {
        let shown = home.json(&["policy", "show", &format!("{name}@0.1")]);
        assert_eq!((&shown["kind"], &shown["name"]), (&json!("handler"), &json!(name)));
        assert_eq!(shown["descriptor"]["transports"], json!([name]));
        assert_eq!(shown["exports"], json!(["runwarden:notify/notifier@0.1.0"]));
        let words = home.done(&["policy", "show", name]);
        for part in ["kind      handler", "Transports\n  ", "deadline_ms = 0", "limits"] {
            assert!(words.contains(part), "{part}: {words}");
        }
        for drawing in [
            ["policy", "matrix", name].as_slice(),
            &["policy", "show", name, "--as", "svg"],
        ] {
            home.run(drawing).exits(64).hints("policy show");
        }
        home.run(&["policy", "activate", name, "--reason", "to see"])
            .exits(64)
            .hints("runwarden notify add");
    }
    home.run(&["create", "handler"]).exits(2);
    let unknown = home.run(&["create", "gadget"]).exits(2).err;
    assert!(!unknown.contains("handler"), "{unknown}");
    home.run(&["policy", "rollback", "handler"]).exits(2);
}

#[test]
fn a_handler_is_installed_and_removed_and_never_put_in_force() {
    let home = Home::new();
    let path = home.path("gong.wasm");
    std::fs::write(&path, hostile_handler(Mode::Honest)).expect("a file");
    let path = path.to_string_lossy().into_owned();
    let refused = home.run(&["policy", "install", &path, "--activate"]).exits(64);
    refused.hints("runwarden notify add NAME --component gong@1.0.0");
    assert!(
        home.done(&["policy", "show", &path])
            .contains("strokes = 3  How often.")
    );
    let installed = home.json(&["policy", "install", &path]);
    assert_eq!(
        (&installed["kind"], &installed["name"], &installed["activated"]),
        (&json!("handler"), &json!("gong"), &json!(false))
    );
    assert_eq!(home.json(&["policy", "show", "gong"])["digest"], installed["digest"]);
    assert_eq!(home.json(&["policy", "rm", "gong@1"])["removed"], json!(true));
    home.run(&["policy", "show", "gong"]).exits(2);
    std::fs::write(&path, hostile_handler(Mode::HandlerHasProblems)).expect("a file");
    let refused = home.run(&["policy", "install", &path]).exits(65).err;
    for place in ["version", "transports[3]", "config[1]"] {
        assert!(refused.contains(place), "{place}: {refused}");
    }
}

#[test]
fn a_handler_that_is_needed_is_not_removed() {
    let home = Home::new();
    let path = home.path("gong.wasm");
    std::fs::write(&path, hostile_handler(Mode::Honest)).expect("a file");
    home.done(&["policy", "install", &path.to_string_lossy()]);
    let file = home.path("ends").to_string_lossy().into_owned();
    home.done(&["notify", "add", "bell", "--component", "gong@1", "--file", &file]);
    let in_use = || {
        let listed = home.json(&["policy", "ls"]);
        let mut components = listed.as_array().into_iter().flatten();
        let gong = components.find(|component| component["name"] == "gong").cloned();
        gong.expect("it is installed")["in_use"].clone()
    };
    let refused = |words: &str, hint: &str| {
        assert_eq!(in_use(), json!(1), "what is refused is shown to be in use");
        let answer = home.run(&["policy", "rm", "gong"]).exits(4);
        assert!(answer.err.contains(words), "{words}: {}", answer.err);
        answer.hints(hint);
    };
    refused("the binding bell names it", "runwarden notify rm bell");
    home.done(&["create", "play", "--id", "p-1"]);
    home.done(&["notify", "rm", "bell"]);
    refused(
        "play/p-1 is to be told through it when it ends",
        "wait until it was told",
    );
    home.done(&["transition", "p-1", "merged", "--reason", "play.merged.ok"]);
    assert_eq!(in_use(), json!(0));
    assert_eq!(home.json(&["policy", "rm", "gong"])["removed"], json!(true));
}

#[test]
fn the_interfaces_are_written_as_tools_want_them() {
    let home = Home::new();
    let directory = home.path("wit");
    home.done(&["policy", "wit", &directory.to_string_lossy()]);
    for file in [
        "lifecycle.wit",
        "worlds.wit",
        "deps/types/types.wit",
        "deps/host/host.wit",
        "deps/notify/notify.wit",
    ] {
        assert!(directory.join(file).is_file(), "{file}");
    }
    let mut resolve = wit_parser::Resolve::default();
    let (package, _) = resolve.push_dir(&directory).expect("tools understand it");
    assert!(!resolve.packages[package].worlds.is_empty());
}
