//! When schedules fire, as tables.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use jiff::tz::TimeZone;
use proptest::prelude::*;

use super::*;

/// Clocks as in central Europe: forward at 02:00 on the last Sunday of March, back at 03:00 on the last of October.
fn berlin() -> TimeZone {
    TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
}

fn moment(text: &str) -> Timestamp {
    Timestamp::parse_rfc3339(text).unwrap()
}

fn cron(text: &str, zone: TimeZone) -> Timetable {
    Timetable::Cron(Box::new(Expression::parse(text).unwrap()), zone)
}

/// The fire times after a moment, one by one.
fn fires(timetable: &Timetable, after: &str, count: usize) -> Vec<String> {
    let mut next = moment(after);
    let mut found = Vec::new();
    while found.len() < count {
        next = timetable.next_after(next).unwrap();
        found.push(next.to_rfc3339().replace(":00.000Z", "Z"));
    }
    found
}

fn check(expression: &str, after: &str, expected: &[&str]) {
    assert_eq!(
        fires(&cron(expression, berlin()), after, expected.len()),
        expected,
        "{expression}"
    );
}

#[test]
fn a_time_that_the_clocks_jump_over_fires_once_at_the_jump() {
    // 02:00 becomes 03:00 at 01:00Z.
    check(
        "30 2 * * *",
        "2026-03-28T00:00:00Z",
        &["2026-03-28T01:30Z", "2026-03-29T01:00Z", "2026-03-30T00:30Z"],
    );
    check(
        "0,30 2,14 * * *",
        "2026-03-28T14:00:00Z",
        &[
            "2026-03-29T01:00Z",
            "2026-03-29T12:00Z",
            "2026-03-29T12:30Z",
            "2026-03-30T00:00Z",
        ],
    );
}

#[test]
fn a_time_that_the_clocks_show_twice_fires_once() {
    // 03:00 becomes 02:00 at 01:00Z.
    check(
        "30 2 * * *",
        "2026-10-24T12:00:00Z",
        &["2026-10-25T00:30Z", "2026-10-26T01:30Z"],
    );
    check(
        "0,30 2,14 * * *",
        "2026-10-24T23:00:00Z",
        &["2026-10-25T00:00Z", "2026-10-25T00:30Z", "2026-10-25T13:00Z"],
    );
    // Asked from within the hour that is shown again.
    check("45 2 * * *", "2026-10-25T01:10:00Z", &["2026-10-26T01:45Z"]);
}

#[test]
fn a_rhythm_goes_on_as_the_wall_clock_shows() {
    check(
        "*/30 * * * *",
        "2026-10-25T00:00:00Z",
        &[
            "2026-10-25T00:30Z",
            "2026-10-25T01:00Z",
            "2026-10-25T01:30Z",
            "2026-10-25T02:00Z",
        ],
    );
    check(
        "15 * * * *",
        "2026-03-29T00:00:00Z",
        &["2026-03-29T00:15Z", "2026-03-29T01:15Z", "2026-03-29T02:15Z"],
    );
    check(
        "*/20 2 * * *",
        "2026-03-28T02:00:00Z",
        &["2026-03-30T00:00Z", "2026-03-30T00:20Z"],
    );
}

#[test]
fn an_expression_means_days_of_the_week_of_the_month_and_nicknames() {
    let utc = |text: &str, expected: &[&str]| {
        let found = fires(&cron(text, TimeZone::UTC), "2026-11-30T02:51:36Z", expected.len());
        assert_eq!(found, expected, "{text}");
    };
    utc("30 6 * * MON-FRI", &["2026-11-30T06:30Z", "2026-12-01T06:30Z"]);
    utc("0 0 L * *", &["2026-12-31T00:00Z", "2027-01-31T00:00Z"]);
    utc(
        "0 12 13 * 5",
        &["2026-12-04T12:00Z", "2026-12-11T12:00Z", "2026-12-13T12:00Z"],
    );
    utc("0 0 29 2 *", &["2028-02-29T00:00Z", "2032-02-29T00:00Z"]);
    utc("@daily", &["2026-12-01T00:00Z"]);
    utc("@hourly", &["2026-11-30T03:00Z"]);
}

#[test]
fn a_bad_expression_names_its_field() {
    let problem = |text: &str| Expression::parse(text).unwrap_err().to_string();
    assert_eq!(problem("60 * * * *"), "the minute `60` cannot be read");
    assert_eq!(problem("0 24 * * *"), "the hour `24` cannot be read");
    assert_eq!(problem("0 0 0 * *"), "the day of month `0` cannot be read");
    assert_eq!(problem("0 0 * FOO *"), "the month `FOO` cannot be read");
    assert_eq!(problem("0 0 * * 5-1"), "the day of week `5-1` cannot be read");
    assert!(problem("* * * *").ends_with("this has 4"));
    assert!(problem("").ends_with("this has 0"));
    assert!(problem("* * * * * *").ends_with("this has 6"));
    assert!(problem("@reboot").starts_with("`@reboot` is none of"));
    assert_eq!(problem("0 0 31 2 *"), "no day is meant by it");
    assert_eq!(problem("* * 30 2 *"), "no day is meant by it");
    assert!(Expression::parse(EXAMPLE).is_ok());
}

#[test]
fn an_interval_is_an_even_grid_from_the_creation() {
    let start = moment("2026-03-28T23:59:30Z");
    let hourly = Timetable::Every(DurationMs::from_ms(3_600_000), start);
    let next = |after: &str| hourly.next_after(moment(after)).unwrap().to_rfc3339();
    assert_eq!(next("2026-03-28T23:59:30Z"), "2026-03-29T00:59:30.000Z");
    assert_eq!(next("2026-03-29T00:59:29Z"), "2026-03-29T00:59:30.000Z");
    assert_eq!(next("2026-03-29T00:59:30Z"), "2026-03-29T01:59:30.000Z");
    assert_eq!(
        next("2020-01-01T00:00:00Z"),
        "2026-03-29T00:59:30.000Z",
        "a clock that was put back"
    );
    assert_eq!(hourly.next_after(Timestamp::from_ms(i64::MAX)), None);
}

fn every_hour(missed: Missed) -> (Schedule, Timetable) {
    let created_at = moment("2026-01-01T00:00:00Z");
    let every = DurationMs::from_ms(3_600_000);
    let schedule = Schedule {
        name: "hourly".to_owned(),
        cadence: Cadence::Every(every),
        overlap: Overlap::Allow,
        missed,
        paused: false,
        created_at,
        next_fire_at: Some(moment("2026-01-01T01:00:00Z")),
    };
    (schedule, Timetable::Every(every, created_at))
}

/// What is due as words: `start 01:00`, or `lapse 01:00..05:00 x5`.
fn words(firings: &[Firing]) -> Vec<String> {
    let clock = |moment: Timestamp| moment.to_rfc3339()[11..16].to_owned();
    let word = |firing: &Firing| match &firing.lapse {
        None => format!("start {}", clock(firing.nominal)),
        Some(lapse) => {
            assert_eq!(lapse.last, firing.nominal);
            format!("lapse {}..{} x{}", clock(lapse.first), clock(lapse.last), lapse.count)
        }
    };
    for pair in firings.windows(2) {
        assert_eq!(pair[0].next, Some(pair[1].nominal), "each step leads to the next");
    }
    firings.iter().map(word).collect()
}

/// Nobody looked until `now`; what each policy makes of it.
fn missed(now: &str, skip: &[&str], one: &[&str], all: &[&str]) {
    for (policy, expected) in [(Missed::Skip, skip), (Missed::One, one), (Missed::All, all)] {
        let (schedule, timetable) = every_hour(policy);
        let found = due(&schedule, &timetable, moment(now));
        assert_eq!(words(&found), expected, "{} at {now}", policy.word());
        let next = found.last().and_then(|last| last.next);
        assert!(found.is_empty() || next > Some(moment(now)), "the schedule is past now");
    }
}

#[test]
fn missed_fires_are_counted_exactly_by_each_policy() {
    missed("2026-01-01T00:59:59Z", &[], &[], &[]);
    missed(
        "2026-01-01T01:00:00Z",
        &["start 01:00"],
        &["start 01:00"],
        &["start 01:00"],
    );
    missed(
        "2026-01-01T01:01:30Z",
        &["start 01:00"],
        &["start 01:00"],
        &["start 01:00"],
    );
    missed(
        "2026-01-01T01:01:31Z",
        &["lapse 01:00..01:00 x1"],
        &["start 01:00"],
        &["start 01:00"],
    );
    missed(
        "2026-01-01T03:00:05Z",
        &["lapse 01:00..02:00 x2", "start 03:00"],
        &["lapse 01:00..02:00 x2", "start 03:00"],
        &["start 01:00", "start 02:00", "start 03:00"],
    );
    missed(
        "2026-01-01T03:30:00Z",
        &["lapse 01:00..03:00 x3"],
        &["lapse 01:00..02:00 x2", "start 03:00"],
        &["start 01:00", "start 02:00", "start 03:00"],
    );
}

#[test]
fn what_is_at_work_is_overlapped_waited_for_or_left_alone() {
    let firing = |lapse: Option<Lapse>| Firing {
        nominal: moment("2026-01-01T01:00:00Z"),
        next: None,
        lapse,
    };
    let courses = |overlap| [0, 1, WAITING_MAX - 1, WAITING_MAX].map(|running| course(overlap, &firing(None), running));
    use Course::{Start, Wait};
    assert_eq!(courses(Overlap::Allow), [Start; 4]);
    assert_eq!(
        courses(Overlap::Skip),
        [Start, Course::Overlap, Course::Overlap, Course::Overlap]
    );
    assert_eq!(courses(Overlap::Queue), [Start, Wait, Wait, Course::Overlap]);
    let at = moment("2026-01-01T01:00:00Z");
    let lapse = Lapse {
        first: at,
        last: at,
        count: 1,
    };
    for overlap in Overlap::ALL {
        assert_eq!(course(overlap, &firing(Some(lapse.clone())), 1), Course::Lapse);
    }
}

#[test]
fn a_long_absence_starts_a_bounded_number_and_tells_of_the_rest() {
    let (schedule, timetable) = every_hour(Missed::All);
    let found = due(&schedule, &timetable, moment("2027-01-01T00:30:00Z"));
    assert_eq!(found.len(), CAUGHT_UP_MAX + 1);
    let lapse = found[0].lapse.as_ref().unwrap();
    assert_eq!(
        (lapse.count, lapse.first),
        (8_760 - 100, moment("2026-01-01T01:00:00Z"))
    );
}

#[test]
fn a_paused_schedule_and_one_without_a_next_time_have_nothing_due() {
    let (mut schedule, timetable) = every_hour(Missed::All);
    schedule.paused = true;
    assert_eq!(due(&schedule, &timetable, moment("2026-01-02T00:00:00Z")), []);
    schedule.paused = false;
    schedule.next_fire_at = None;
    assert_eq!(due(&schedule, &timetable, moment("2026-01-02T00:00:00Z")), []);
}

#[test]
fn a_clock_that_jumps_far_ahead_costs_a_bounded_number_of_steps() {
    let minutely = cron("* * * * *", TimeZone::UTC);
    let passed = minutely.passed(moment("2026-01-01T00:00:00Z"), moment("2036-01-01T00:00:00Z"), 2);
    assert_eq!(passed.count, 366 * 24 * 60, "those of a year");
    assert_eq!(passed.newest.len(), 2);
    assert_eq!(passed.upcoming, Some(moment("2036-01-01T00:01:00Z")));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Every expression is read or refused, and what is read has fire times that only grow.
    #[test]
    fn any_text_is_read_or_refused_and_fire_times_grow(
        fields in proptest::collection::vec("[0-9*/,LW#?+A-Z-]{1,5}", 5),
        after in 0_i64..4_000_000_000_000,
    ) {
        if let Ok(expression) = Expression::parse(&fields.join(" ")) {
            let timetable = Timetable::Cron(Box::new(expression), berlin());
            let mut at = Timestamp::from_ms(after);
            for _ in 0..5 {
                let Some(next) = timetable.next_after(at) else { break };
                prop_assert!(next > at, "{next:?} after {at:?}");
                at = next;
            }
        }
    }

    /// What is due never repeats or loses a fire time: the counts of all steps are those that are over.
    #[test]
    fn every_fire_time_that_is_over_is_started_or_counted(seconds in 3_600_i64..2_000_000, policy in 0_usize..3) {
        let (schedule, timetable) = every_hour(Missed::ALL[policy]);
        let now = Timestamp::from_ms(schedule.created_at.as_ms() + seconds * 1_000);
        let found = due(&schedule, &timetable, now);
        let counted: u64 = found.iter().map(|firing| firing.lapse.as_ref().map_or(1, |lapse| lapse.count)).sum();
        prop_assert_eq!(counted, u64::try_from(seconds / 3_600).unwrap());
    }
}
