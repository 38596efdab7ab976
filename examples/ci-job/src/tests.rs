use runwarden_kit::check::{names, problems, targets};
use runwarden_kit::{Outcome, sample};

use super::*;

fn judged(ending: Ending) -> Judgement {
    CiJob::verdict(ending).expect("it is no fault")
}

/// An end that the table calls broken for want of a better word.
fn red(status: &str, last_output: &str) -> Ending {
    let mut ending = sample::ending(status, 1, last_output);
    ending.by_table = Some(Outcome {
        status: "broken".to_owned(),
        code: "ci.broken.build".to_owned(),
    });
    ending
}

fn green(attempt: i64) -> Ending {
    let mut ending = sample::ending("testing", 0, "test result: ok. 4 passed; 0 failed");
    ending.attempt = attempt;
    ending.by_table = Some(Outcome {
        status: "passed".to_owned(),
        code: "ci.passed.green".to_owned(),
    });
    ending
}

#[test]
fn the_table_is_sound() {
    assert_eq!(problems(&CiJob::describe()), [""; 0]);
}

#[test]
fn it_ends_from_where_it_works_and_everything_open_can_be_cancelled() {
    let table = CiJob::describe();
    assert!(
        ["building", "testing"]
            .iter()
            .all(|from| ENDS.iter().all(|to| targets(&table, from).contains(to)))
    );
    assert_eq!(names(&table, |status| !status.terminal), OPEN);
    assert_eq!(names(&table, |status| status.success), ["passed", "flaky"]);
}

#[test]
fn the_same_exit_says_where_it_broke() {
    assert_eq!(judged(red("building", "error: expected `;`")).code, "ci.broken.build");
    assert_eq!(judged(red("testing", "")).code, "ci.broken.tests");
}

#[test]
fn green_at_the_second_try_is_flaky() {
    assert_eq!(judged(green(1)).status, "passed");
    let second = judged(green(2));
    assert_eq!(
        (second.status.as_str(), second.code.as_str()),
        ("flaky", "ci.flaky.second_try")
    );
}

#[test]
fn failed_tests_are_counted_by_the_last_line_that_does() {
    let failed = |output: &str| {
        let patch = judged(red("testing", output)).patch;
        patch.first().map(|entry| (entry.name.clone(), entry.json.clone()))
    };
    let three = Some(("tests_failed".to_owned(), "3".to_owned()));
    assert_eq!(
        failed("9 failed\ntest result: FAILED. 12 passed; 3 failed; 0 ignored\nbye"),
        three
    );
    assert_eq!(failed("===== 3 failed, 1 passed in 0.1s ====="), three);
    assert_eq!(failed("the build failed"), None);
}

#[test]
fn an_end_that_the_table_does_not_know_is_a_fault() {
    let ending = sample::ending("testing", 1, "");
    assert_eq!(
        CiJob::verdict(ending).map_err(|fault| fault.code),
        Err("no_verdict".to_owned())
    );
}
