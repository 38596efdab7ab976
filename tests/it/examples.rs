//! The examples as a user has them: installed, put in force, and lived by, with real processes.

mod guards;
mod readmes;
mod verdicts;

use serde_json::Value;

use crate::harness::{Answer, Home};

/// Installs an example, and puts it in force with these parameters.
fn live_by(home: &Home, component: &[u8], label: &str, parameters: &[&str]) {
    install(home, component);
    activate(home, label, parameters);
}

fn install(home: &Home, component: &[u8]) {
    let file = home.path("example.wasm");
    std::fs::write(&file, component).expect("a file");
    home.done(&["policy", "install", &file.to_string_lossy()]);
}

fn activate(home: &Home, label: &str, parameters: &[&str]) {
    let set = parameters.iter().flat_map(|pair| ["--set", pair]);
    let words: Vec<&str> = ["policy", "activate", label, "--reason", "a test"]
        .into_iter()
        .chain(set)
        .collect();
    home.done(&words);
}

/// A move of an entity; `words` is the rest of the command.
fn moved(home: &Home, id: &str, status: &str, words: &str) -> Answer {
    let words = words.split_whitespace();
    home.run(&["transition", id, status].into_iter().chain(words).collect::<Vec<_>>())
}

/// Refused by the guard: with this code, and these words.
fn refused(answer: Answer, words: &str) {
    let answer = answer.exits(5);
    assert!(answer.out.contains(words), "{}", answer.out);
}

fn audited(home: &Home, action: &str, reference: &str) -> Vec<Value> {
    let rows = home.json(&["history", "--admin"]);
    let rows = rows.as_array().expect("an array").iter();
    rows.filter(|row| row["action"] == action && row["target"] == reference)
        .cloned()
        .collect()
}
