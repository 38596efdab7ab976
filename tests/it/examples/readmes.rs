//! What the README of each example tells to type, and what that answers. `BLESS=1` writes the answers down.

use std::path::PathBuf;
use std::process::Command;

use runwarden_test_guests::{AGENT, CI_JOB, COST_BUDGET, STRICT_PLAY, TWO_PERSON_APPROVAL};

use crate::harness::Home;

/// An example, the file that its README calls its component, and the component.
const EXAMPLES: [(&str, &str, &[u8]); 5] = [
    ("agent", "agent.wasm", AGENT),
    ("ci-job", "ci_job.wasm", CI_JOB),
    ("cost-budget", "cost_budget.wasm", COST_BUDGET),
    ("strict-play", "strict_play.wasm", STRICT_PLAY),
    ("two-person-approval", "change.wasm", TWO_PERSON_APPROVAL),
];

#[test]
fn every_session_of_an_example_goes_as_its_readme_shows_it() {
    for (name, file, component) in EXAMPLES {
        let home = Home::new();
        std::fs::write(home.path(file), component).expect("a file in the test's directory");
        std::fs::write(home.path("cases.toml"), read(&path(name, "cases.toml"))).expect("likewise");
        let readme = path(name, "README.md");
        let shown = read(&readme);
        let happens = replayed(&home, &shown);
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&readme, &happens).expect("the README is ours");
        }
        assert_eq!(read(&readme), happens, "{name}: BLESS=1 writes what happens");
    }
}

#[test]
fn every_case_of_an_example_comes_to_what_it_says() {
    let home = Home::new();
    for (name, file, component) in EXAMPLES {
        std::fs::write(home.path(file), component).expect("a file in the test's directory");
        let cases = path(name, "cases.toml");
        let tried = home.run(&["policy", "test", file, "--cases", &cases.to_string_lossy()]);
        let tried = tried.exits(0);
        assert!(!tried.out.contains("warning"), "{}", tried.out);
    }
}

fn path(example: &str, file: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../examples", example, file]
        .iter()
        .collect()
}

fn read(path: &PathBuf) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The document with the answers that its commands have now: in blocks of `console`, `$ ` begins a command, which goes on
/// after a line that ends in `\` or `&&`, and everything else is an answer.
fn replayed(home: &Home, document: &str) -> String {
    let mut told = String::new();
    let mut lines = document.lines().peekable();
    let mut in_session = false;
    while let Some(line) = lines.next() {
        match line.strip_prefix("$ ").filter(|_| in_session) {
            Some(first) => {
                let mut command = first.to_owned();
                while command.ends_with('\\') || command.ends_with("&&") {
                    command = format!("{command}\n{}", lines.next().unwrap_or_default());
                }
                while lines
                    .next_if(|line| !line.starts_with("$ ") && *line != "```")
                    .is_some()
                {}
                told = format!("{told}$ {command}\n{}", answer(home, &command));
            }
            None => {
                in_session = if in_session {
                    line != "```"
                } else {
                    line == "```console"
                };
                told = format!("{told}{line}\n");
            }
        }
    }
    told
}

/// What a command says on both streams, without what is another one each time.
fn answer(home: &Home, command: &str) -> String {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_runwarden"));
    let directory = program.parent().expect("it is in a directory").display();
    let output = Command::new("sh")
        .args(["-c", &format!("exec 2>&1\n{command}")])
        .env_clear()
        .env("PATH", format!("{directory}:/usr/bin:/bin"))
        .env("RUNWARDEN_HOME", home.home())
        .env("HOME", home.path("."))
        .env("USER", "you")
        .env("LC_ALL", "C.UTF-8")
        .current_dir(home.path("."))
        .output()
        .expect("a shell");
    let text = String::from_utf8(output.stdout).expect("text");
    let line = |line: &str| {
        format!(
            "{}\n",
            masked(&line.replace(&home.path("").display().to_string(), "~/"))
        )
    };
    text.lines().map(line).collect()
}

/// Digests have no meaning to a reader, and are others with another compiler.
fn masked(line: &str) -> String {
    let is_digest = |word: &str| word.len() >= 12 && word.chars().all(|c| c.is_ascii_hexdigit());
    let parts = line.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
    let mask = |part: &str| {
        let word = part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        if is_digest(word) {
            part.replace(word, "…")
        } else {
            part.to_owned()
        }
    };
    parts.map(mask).collect()
}
