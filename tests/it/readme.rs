//! What the README tells a newcomer to type works as it says.

use std::path::Path;

use crate::harness::Home;

/// The commands of the README's blocks, in order: every line that begins with `$ runwarden`, without its comment.
fn commands() -> Vec<String> {
    let readme = include_str!("../../README.md");
    let typed = readme.lines().filter_map(|line| line.strip_prefix("$ runwarden "));
    let bare = typed.map(|line| line.split("  #").next().unwrap_or(line).trim().to_owned());
    bare.collect()
}

/// What the tour takes for granted: a project with tests, a job that fails, a rehearsal, a policy of one's own.
fn project(home: &Home) {
    let script = |name: &str, text: &str| {
        let path = home.path(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a file in the test's directory");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path, mode).expect("a file of ours");
    };
    script("nightly.sh", "echo working; exit 3");
    script("rehearse.sh", "echo once more");
    std::fs::write(home.path("Makefile"), "test:\n\t@echo tested\n").expect("a file in the test's directory");
    let session = runwarden_bundled::POLICIES
        .iter()
        .find(|policy| policy.kind == "session");
    let mut bytes = session.expect("a bundled policy").component();
    bytes.extend([0, 3, 1, b'm', b'y']);
    std::fs::write(home.path("my-session.wasm"), bytes).expect("a file in the test's directory");
}

#[test]
fn every_command_of_the_tour_does_what_the_readme_says() {
    let home = Home::new();
    project(&home);
    let commands = commands();
    assert!(
        commands.len() >= 15,
        "only {} commands are in the README",
        commands.len()
    );
    let directory = Path::new(env!("CARGO_BIN_EXE_runwarden"))
        .parent()
        .expect("the program is in a directory");
    for command in commands {
        let mut path = directory.as_os_str().to_owned();
        path.push(":/usr/bin:/bin");
        let mut shell = std::process::Command::new("sh");
        shell
            .args(["-c", &format!("runwarden {command}")])
            .env("PATH", path)
            .env("RUNWARDEN_HOME", home.home());
        shell.env("HOME", home.path(".")).current_dir(home.path("."));
        let output = shell.output().expect("a shell");
        // The nightly job of the tour fails with 3: `wait --exit-code` leaves with it. What `diff` compares differs.
        let wanted = match () {
            () if command.contains("--exit-code") => 3,
            () if command.starts_with("policy diff") => 1,
            () => 0,
        };
        assert_eq!(output.status.code(), Some(wanted), "`runwarden {command}`: {output:?}");
    }
}

#[test]
fn the_two_commands_are_the_demo_and_the_tests() {
    let readme = include_str!("../../README.md");
    let block = readme.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next());
    let lines: Vec<&str> = block.expect("a block of commands").lines().collect();
    let first = "rustup target add wasm32-unknown-unknown && cargo run --release -p runwarden -- demo";
    assert_eq!(lines, [first, "cargo test --workspace"]);
    let home = Home::new();
    let demo = home.run(&["demo"]).exits(0);
    assert!(demo.out.contains("10 steps, each verified."), "{}", demo.out);
}
