//! What the README of each example tells to type, and what that answers. `BLESS=1` writes the answers down.

use std::path::PathBuf;

use runwarden_test_guests::{AGENT, CI_JOB, COST_BUDGET, STRICT_PLAY, TWO_PERSON_APPROVAL};

use crate::console::replayed;
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
        let happens = replayed(&home, &[], &shown);
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
