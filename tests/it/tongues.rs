//! Policies and handlers in JavaScript, Python and C: what `policy new` begins and what `examples/` holds is built by the
//! tools of its language, tested natively, and put to its cases.
//!
//! The tools are those that `.ci/toolchains` fetches. Where they are not, a test says so; where `CI` is `true`, it fails.

use std::path::{Path, PathBuf};
use std::process::Command;

use runwarden_test_guests::TICKET;

use crate::harness::Home;

/// A language whose tools are fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tongue {
    JavaScript,
    Python,
    C,
}

impl Tongue {
    /// As `policy new --lang` has it.
    fn word(self) -> &'static str {
        match self {
            Self::JavaScript => "js",
            Self::Python => "python",
            Self::C => "c",
        }
    }

    /// Where a project has its tools.
    fn place(self) -> &'static str {
        match self {
            Self::JavaScript => "node_modules",
            Self::Python | Self::C => ".venv",
        }
    }

    /// What tests a project natively, and says whether it passed.
    fn native_test(self) -> &'static [&'static str] {
        match self {
            Self::JavaScript => &["npm", "test"],
            Self::Python => &["python3", "-m", "unittest"],
            Self::C => &["make", "test"],
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn toolchains() -> PathBuf {
    let given = std::env::var_os("RUNWARDEN_TOOLCHAINS").map(PathBuf::from);
    given.unwrap_or_else(|| root().join("target/toolchains"))
}

/// A project of a test, with the tools of its language.
struct Project {
    home: Home,
    tongue: Tongue,
    directory: PathBuf,
}

impl Project {
    /// A copy of an example. None where the tools are missing.
    fn example(tongue: Tongue, example: &str) -> Option<Self> {
        Self::made(tongue, "example", |_, directory| {
            copy(&root().join("examples").join(example), directory);
        })
    }

    /// What `policy new` begins. None where the tools are missing.
    fn begun(tongue: Tongue, options: &[&str]) -> Option<Self> {
        Self::made(tongue, "begun", |home, _| {
            home.done(&[&["policy", "new", "begun", "--lang", tongue.word()], options].concat());
        })
    }

    fn made(tongue: Tongue, name: &str, make: impl FnOnce(&Home, &Path)) -> Option<Self> {
        let tools = toolchains().join(tongue.word()).join(tongue.place());
        let Ok(tools) = tools.canonicalize() else {
            let missing = format!(
                "no tools of {tongue:?} in {}: .ci/toolchains fetches them",
                tools.display()
            );
            let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
            assert!(!is_ci, "{missing}");
            #[expect(clippy::print_stderr, reason = "what is left untested must be seen")]
            {
                eprintln!("not tested: {missing}");
            }
            return None;
        };
        let home = Home::new();
        let directory = home.path(name);
        make(&home, &directory);
        std::os::unix::fs::symlink(tools, directory.join(tongue.place())).expect("a link");
        Some(Self {
            home,
            tongue,
            directory,
        })
    }

    /// Builds it with `policy build`; the path of the component.
    fn build(&self) -> String {
        let cache = toolchains().join("cache");
        let arguments = ["policy", "build", &self.directory.to_string_lossy(), "--json"];
        let answer = self
            .home
            .run_with(&arguments, &[("ZIG_GLOBAL_CACHE_DIR", &cache.to_string_lossy())]);
        let built = answer.exits(0).document();
        built["path"].as_str().expect("a path").to_owned()
    }

    /// Runs a tool in the project, which must pass.
    fn passes(&self, words: &[&str]) {
        let output = Command::new(words[0])
            .args(&words[1..])
            .current_dir(&self.directory)
            .output()
            .unwrap_or_else(|error| panic!("{words:?}: {error}"));
        assert!(
            output.status.success(),
            "{words:?}: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }

    fn passes_natively(&self) {
        self.passes(self.tongue.native_test());
    }

    /// Puts the component to a table of cases, which it must keep.
    fn keeps(&self, component: &str, cases: &Path) {
        keeps(
            &self.home,
            component,
            cases,
            if self.tongue == Tongue::Python { LARGE } else { &[] },
        );
    }
}

/// What an interpreter of Python wants.
const LARGE: &[&str] = &["--component-size", "32MiB", "--compile-time", "5m"];

fn keeps(home: &Home, component: &str, cases: &Path, options: &[&str]) {
    let cases = cases.to_string_lossy();
    home.done(&[&["policy", "test", component, "--cases", &cases], options].concat());
}

/// Copies the files that are kept of an example.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("an example") {
        let entry = entry.expect("an entry");
        let name = entry.file_name();
        let written = ["build", "kit", "node_modules", ".venv", "__pycache__"];
        if written.iter().any(|other| name == *other) {
            continue;
        }
        let (path, copied) = (entry.path(), to.join(&name));
        if path.is_dir() {
            copy(&path, &copied);
        } else if !from.ends_with("wit") || name == "world.wit" {
            std::fs::copy(&path, &copied).expect("a copy");
        }
    }
}

fn ticket_cases() -> PathBuf {
    root().join("examples/one-policy-five-ways/cases.toml")
}

/// The same table of cases for the policy of tickets in each language.
fn a_ticket_in(tongue: Tongue) {
    let Some(project) = Project::example(tongue, &format!("one-policy-five-ways/{}", tongue.word())) else {
        return;
    };
    let component = project.build();
    project.passes_natively();
    project.keeps(&component, &ticket_cases());
}

#[test]
fn the_policy_of_tickets_in_javascript_keeps_the_cases_of_all_five() {
    a_ticket_in(Tongue::JavaScript);
}

#[test]
fn the_policy_of_tickets_in_python_keeps_the_cases_of_all_five() {
    a_ticket_in(Tongue::Python);
}

#[test]
fn the_policy_of_tickets_in_c_keeps_the_cases_of_all_five() {
    a_ticket_in(Tongue::C);
}

#[test]
fn the_policy_of_tickets_in_rust_and_as_a_table_keeps_the_cases_of_all_five() {
    let home = Home::new();
    let path = home.path("ticket.wasm");
    std::fs::write(&path, TICKET).expect("a file");
    keeps(&home, &path.to_string_lossy(), &ticket_cases(), &[]);
    let table = home.path("table");
    copy(&root().join("examples/one-policy-five-ways/toml"), &table);
    let built = home.json(&["policy", "build", &table.to_string_lossy()]);
    keeps(&home, built["path"].as_str().expect("a path"), &ticket_cases(), &[]);
}

#[test]
fn the_examples_in_javascript_and_c_are_built_and_keep_their_cases() {
    for (tongue, example) in [(Tongue::JavaScript, "js-handler"), (Tongue::C, "c-policy")] {
        let Some(project) = Project::example(tongue, example) else {
            return;
        };
        let component = project.build();
        project.passes_natively();
        project.keeps(&component, &project.directory.join("cases.toml"));
    }
}

#[test]
fn the_example_in_python_is_built_by_hand_and_keeps_its_cases() {
    let Some(project) = Project::example(Tongue::Python, "python-policy") else {
        return;
    };
    project
        .home
        .done(&["policy", "wit", &project.directory.join("wit").to_string_lossy()]);
    copy(&root().join("cli/templates/python/kit"), &project.directory.join("kit"));
    let tool = [
        ".venv/bin/componentize-py",
        "--quiet",
        "--wit-path",
        "wit",
        "--world",
        "component",
    ];
    project.passes(&[&tool[..], &["bindings", "build/bindings"]].concat());
    project.passes_natively();
    let paths = ["--python-path", ".", "--python-path", "kit"];
    let output = ["componentize", "--stub-wasi", "--output", "build/component.wasm"];
    project.passes(&[&tool[..], &output, &paths, &["policy"]].concat());
    let component = project.directory.join("build/component.wasm");
    project.keeps(&component.to_string_lossy(), &project.directory.join("cases.toml"));
}

#[test]
fn what_policy_new_begins_in_javascript_and_c_is_built_and_passes_its_tests() {
    for tongue in [Tongue::JavaScript, Tongue::C] {
        for options in [&[][..], &["--handler"]] {
            let Some(project) = Project::begun(tongue, options) else {
                return;
            };
            let component = project.build();
            project.passes_natively();
            project.keeps(&component, &project.directory.join("cases.toml"));
        }
    }
}

/// That its components can be built is seen of the examples: what an interpreter costs to compile is paid three times
/// already.
#[test]
fn what_policy_new_begins_in_python_passes_its_tests() {
    for options in [&[][..], &["--handler"]] {
        let Some(project) = Project::begun(Tongue::Python, options) else {
            return;
        };
        let tool = [
            ".venv/bin/componentize-py",
            "--quiet",
            "--wit-path",
            "wit",
            "--world",
            "component",
        ];
        project.passes(&[&tool[..], &["bindings", "build/bindings"]].concat());
        project.passes_natively();
    }
}

/// The bindings that `policy new --lang c` writes are those of the contract: what their generator is given is what this
/// program writes.
#[test]
fn the_bindings_for_c_name_every_interface_of_their_world() {
    for (part, interfaces) in [
        ("policy", &["lifecycle.describe", "guard.evaluate"][..]),
        ("handler", &["notifier.plan"]),
    ] {
        let kit = root().join("cli/templates/c/kit").join(part);
        let bindings = std::fs::read_to_string(kit.join("component.c")).expect("bindings");
        for interface in interfaces {
            let (interface, function) = interface.split_once('.').expect("a function");
            assert!(
                bindings.contains(&format!("/{interface}@0.1.0#{function}")),
                "{part}: {interface}"
            );
        }
    }
}
