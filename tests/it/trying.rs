//! policy test: what is told of a component before anything is put under it.

use std::path::{Path, PathBuf};

use runwarden_test_guests::{AGENT, CI_JOB, COST_BUDGET, Mode, REVIEW, STRICT_PLAY, TWO_PERSON_APPROVAL, hostile};
use serde_json::{Value, json};

use crate::harness::Home;

/// A home with a component and its cases in a directory of their own.
struct Bench {
    home: Home,
    directory: PathBuf,
}

impl Bench {
    fn new(component: &[u8], cases: &str) -> Self {
        let home = Home::new();
        let directory = home.path("policy");
        std::fs::create_dir(&directory).expect("a directory");
        let bench = Self { home, directory };
        std::fs::write(bench.directory.join("policy.wasm"), component).expect("a component");
        bench.write(cases);
        bench
    }

    fn write(&self, cases: &str) {
        std::fs::write(self.directory.join("cases.toml"), cases).expect("a case file");
    }

    /// What the whole directory comes to.
    fn tested(&self, code: i32) -> Value {
        self.home
            .run(&["policy", "test", "./policy", "--json"])
            .exits(code)
            .document()
    }
}

/// A bundled component, by the name of its policy.
fn bundled(name: &str) -> Vec<u8> {
    let all = runwarden_bundled::POLICIES.iter().chain(runwarden_bundled::HANDLERS);
    all.into_iter()
        .find(|bundled| bundled.name == name)
        .expect("it ships")
        .component()
}

const REVIEW_CASES: &str = r#"
[parameters]
quorum = 1

[[case]]
from = "open"
to = "approved"

[[case]]
from = "open"
to = "waived"
actor = "agent"
expect = "rejected"
code = "actor"

[[case]]
name = "nobody waives alone"
from = "open"
to = "waived"
expect = "rejected"
code = "quorum_missing"

[[case]]
from = "open"
to = "waived"
children = [{ kind = "review", status = "approved", terminal = true, success = true }]

[[case]]
from = "open"
to = "declined"
set = { soul = 1 }
expect = "invalid"
code = "field"

[[case]]
from = "open"
to = "declined"
fields = { exit_code = 1 }
guards = { exit_code = 2 }
expect = "conflict"
code = "guard"

[[guard]]
from = "open"
to = "waived"
actor = "operator:ann"
expect = "refused"
code = "quorum_missing"

[[exit]]
exit_code = 0
last_output = "all read. LGTM"
expect = "approved"
code = "review.approved.ok"

[[exit]]
signal = 9
cause = "timeout"
expect = "declined"

[[health]]
status = "open"
process = "alive"
quiet = "2h"
expect = "healthy"

[[health]]
status = "open"
messages = -1
expect = "unknown"
"#;

#[test]
fn every_case_is_put_to_the_code_that_would_decide_it_and_no_home_is_made() {
    let bench = Bench::new(REVIEW, REVIEW_CASES);
    let tested = bench.tested(0);
    let cases = tested["cases"].as_array().expect("cases");
    assert_eq!(cases.len(), 11, "{tested:#}");
    assert!(cases.iter().all(|case| case["ok"] == true), "{tested:#}");
    let sections: Vec<&str> = cases.iter().filter_map(|case| case["section"].as_str()).collect();
    let in_order = [
        "case", "case", "case", "case", "case", "case", "guard", "exit", "exit", "health", "health",
    ];
    assert_eq!(sections, in_order);
    assert_eq!(cases[2]["name"], "nobody waives alone");
    assert_eq!(
        tested["findings"],
        json!([{"severity": "warning", "place": "kill",
        "message": "what is run cannot be killed: there is no row"}])
    );
    assert!(!bench.home.home().exists(), "a file is tried without a home");
}

#[test]
fn a_case_that_comes_to_something_else_is_told_with_both_and_its_line() {
    let cases = "[[case]]\nfrom = \"open\"\nto = \"declined\"\nexpect = \"rejected\"\ncode = \"no_edge\"\n\n[[exit]]\nexit_code = 0\n\
                 expect = \"approved\"\n\n[[case]]\nfrom = \"lost\"\nto = \"open\"\nexpect = \"invalid\"\n\n\
                 [[plan]]\nstatus = \"failed\"\n";
    let bench = Bench::new(REVIEW, cases);
    let answer = bench.home.run(&["policy", "test", "policy"]).exits(1);
    insta::assert_snapshot!("failed_cases", answer.out);
    let tested = bench.tested(1);
    assert_eq!((&tested["failed"], &tested["ok"]), (&json!(4), &json!(false)));
}

#[test]
fn everything_wrong_with_a_case_file_is_told_at_once_with_its_line() {
    let bench = Bench::new(
        REVIEW,
        r#"[parameters]
nope = 1

[[case]]
form = "draft"
to = "published"
actor = "wizard"
code = "x"

[[exit]]
exit_code = 1
signal = 9
evidence = "maybe"
expect = "failed"

[[health]]
status = "running"
quiet = "soon"

[[cases]]
"#,
    );
    let answer = bench.home.run(&["policy", "test", "./policy"]).exits(64);
    insta::assert_snapshot!("bad_case_file", answer.err);
    bench.write("[[case]\n");
    let answer = bench.home.run(&["policy", "test", "./policy"]).exits(64);
    assert!(answer.err.contains("cases.toml:1: no TOML"), "{}", answer.err);
}

#[test]
fn without_cases_the_findings_are_all_there_is() {
    let bench = Bench::new(REVIEW, "");
    let answer = bench.home.run(&["policy", "test", "./policy/policy.wasm"]).exits(0);
    assert!(answer.out.contains("cases.toml has no cases"), "{}", answer.out);
    let of = |cases: &str, code: i32| {
        let arguments = ["policy", "test", "./policy/policy.wasm", "--cases", cases];
        bench.home.run(&arguments).exits(code).out
    };
    assert!(of("policy/cases.toml", 1).contains("has no cases"));
    let missing = bench
        .home
        .run(&["policy", "test", "./policy/policy.wasm", "--cases", "nowhere.toml"]);
    assert!(missing.exits(65).err.contains("cannot read nowhere.toml"));
    std::fs::write(bench.directory.join("other.wasm"), REVIEW).expect("a component");
    bench
        .home
        .run(&["policy", "test", "policy"])
        .exits(64)
        .hints("other.wasm");
    bench.home.run(&["policy", "test", "./policy/none.wasm"]).exits(65);
    std::fs::write(bench.directory.join("other.wasm"), "words").expect("a file");
    bench.home.run(&["policy", "test", "./policy/other.wasm"]).exits(65);
}

#[test]
fn an_error_in_the_descriptor_is_a_finding_like_others_and_no_case_is_tried() {
    let bench = Bench::new(
        &hostile(Mode::DescribeHasProblems),
        "[[case]]\nfrom = \"idle\"\nto = \"held\"\n",
    );
    let tested = bench.tested(1);
    let findings = tested["findings"].as_array().expect("findings");
    assert!(
        findings.iter().any(|finding| finding["severity"] == "error"),
        "{tested:#}"
    );
    assert_eq!(tested["cases"], json!([]));
}

#[test]
fn what_ships_is_tried_by_its_name_and_a_handler_by_its_plans() {
    let home = Home::new();
    let write = |name: &str, text: &str| {
        let path = home.path(name);
        std::fs::write(&path, text).expect("a case file");
        path.display().to_string()
    };
    let play = write("play.toml", "[[case]]\nfrom = \"pending\"\nto = \"prepared\"\n");
    assert!(
        home.done(&["policy", "test", "play", "--cases", &play])
            .contains("1 of 1 cases ok")
    );
    let plans = write(
        "plans.toml",
        "[[plan]]\nstatus = \"failed\"\nreason = \"run.failed.exit_nonzero\"\ndestinations = [\"a\", \"b\"]\ncount = 2\n\
         contains = \"run.failed.exit_nonzero\"\n\n[[plan]]\nstatus = \"completed\"\nsuccess = true\ndestinations = []\n\
         expect = \"nothing\"\n",
    );
    let file = home.path("file.wasm");
    std::fs::write(&file, bundled("file")).expect("a component");
    let file = file.display().to_string();
    let tested = home.json(&["policy", "test", &file, "--cases", &plans]);
    assert_eq!(
        (tested["kind"].as_str(), &tested["ok"]),
        (Some("handler"), &json!(true)),
        "{tested:#}"
    );
    home.run(&["policy", "test", &file, "--cases", &play]).exits(1);
}

#[test]
fn the_verdict_table_and_the_thresholds_are_asked_where_no_function_is() {
    let cases = "[[exit]]\nexit_code = 0\nexpect = \"completed\"\n\n[[exit]]\nexit_code = 3\nexpect = \"failed\"\n\
                 code = \"run.failed.exit_nonzero\"\n\n[[exit]]\nexpect = \"failed\"\ncause = \"host_restarted\"\n\n\
                 [[exit]]\nexit_code = 0\nevidence = \"artifact_missing\"\nexpect = \"completed\"\n";
    let bench = Bench::new(&bundled("session"), cases);
    let tested = bench.home.run(&["policy", "test", "policy", "--json"]).document();
    let came: Vec<&str> = tested["cases"]
        .as_array()
        .expect("cases")
        .iter()
        .filter_map(|case| case["came"].as_str())
        .collect();
    insta::assert_snapshot!("ends_of_a_session", came.join("\n"));
}

#[test]
fn a_bench_measures_a_decision_and_a_call_cold_and_warm() {
    let bench = Bench::new(REVIEW, REVIEW_CASES);
    let tested = bench.home.json(&["policy", "test", "policy", "--bench"]);
    let call = &tested["bench"]["call"];
    assert_eq!(call["function"], "guard.evaluate");
    let numbers = [
        &tested["bench"]["decision_ns"],
        &call["cold_ns"],
        &call["warm_ns"],
        &call["fuel"],
        &call["memory_bytes"],
    ];
    assert!(
        numbers
            .iter()
            .all(|number| number.as_u64().is_some_and(|number| number > 0)),
        "{tested:#}"
    );
}

#[test]
fn the_examples_come_to_what_their_cases_say_and_have_no_doubts() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    for (name, component) in [
        ("agent", AGENT),
        ("ci-job", CI_JOB),
        ("cost-budget", COST_BUDGET),
        ("strict-play", STRICT_PLAY),
        ("two-person-approval", TWO_PERSON_APPROVAL),
    ] {
        let cases = std::fs::read_to_string(root.join(name).join("cases.toml")).expect("it has cases");
        let bench = Bench::new(component, &cases);
        let answer = bench.home.run(&["policy", "test", "policy"]);
        assert_eq!(answer.code, 0, "{name}: {}{}", answer.out, answer.err);
        assert!(!answer.out.contains("warning:"), "{name}: {}", answer.out);
    }
}

#[test]
fn a_new_table_is_built_and_comes_to_what_its_cases_say() {
    let home = Home::new();
    home.done(&["policy", "new", "post"]);
    home.done(&["policy", "build", "post"]);
    let tested = home.json(&["policy", "test", "post"]);
    assert_eq!(
        (&tested["ok"], &tested["findings"]),
        (&json!(true), &json!([])),
        "{tested:#}"
    );
}
