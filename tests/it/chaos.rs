//! Workers that are stopped, continued, killed, told to give back, and put where the boot clock says something else, at
//! random moments: no occurrence overlaps itself, none is lost, and every suspicion is in the history.
//!
//! What the programs did is known from a journal that they write themselves, and from a lock for each occurrence, which
//! the kernel takes from whoever dies: an attempt that cannot get it overlaps another.

mod workers;

use std::collections::{BTreeMap, BTreeSet};

use runwarden_host::Host;
use runwarden_host::model::{Entity, HistoryRow};
use runwarden_host::store::{HistoryQuery, OpenMode};

use self::workers::Workers;
use crate::crashes::Random;
use crate::harness::{Home, library, until};

/// Attempts of those that are to succeed in the end, whatever is done to their workers.
const PATIENT: u64 = 40;

/// Attempts of those that may be given up.
const IMPATIENT: u64 = 2;

/// What an occurrence does: it takes its lock, says so, takes its time, says so. How long it takes may be another for the
/// row that was submitted than for those that go on where one was given up.
const SCRIPT: &str = r#"
tell() { echo "$1 $name $RUNWARDEN_LEASE_REF $RUNWARDEN_LEASE_TOKEN" >> "$journal"; }
journal=$1 name=$2
exec 9>> "$journal.$name"
flock --nonblock 9 || { tell overlap; exit 9; }
tell begin
[ -s "$journal.$name" ] || echo "$RUNWARDEN_LEASE_REF" >&9
if [ "$(cat "$journal.$name")" = "$RUNWARDEN_LEASE_REF" ]; then sleep "$3"; else sleep "$4"; fi
tell end"#;

/// Longer than the test takes: who takes so long is ended by being given up.
const FOR_EVER: &str = "600";

/// An occurrence that was put into the queue.
struct Occurrence {
    name: String,
    id: String,
    attempts: u64,
}

/// What is at stake, and who works on it.
struct Scene<'a> {
    home: &'a Home,
    workers: Workers<'a>,
    known: Vec<Occurrence>,
    random: Random,
}

impl Scene<'_> {
    /// Puts one more into the queue.
    fn submit(&mut self) {
        let random = &mut self.random;
        let attempts = if random.below(6) == 0 { IMPATIENT } else { PATIENT };
        let takes = if random.below(4) == 0 {
            1_000 + random.below(1_000)
        } else {
            50 + random.below(500)
        };
        let takes = format!("{}.{:03}", takes / 1_000, takes % 1_000);
        self.submit_as(attempts, "default", [&takes, &takes]);
    }

    fn submit_as(&mut self, attempts: u64, queue: &str, takes: [&str; 2]) {
        let (name, journal) = (format!("o{}", self.known.len()), self.home.path("journal"));
        let random = &mut self.random;
        let (lease, priority) = (format!("{}ms", 500 + random.below(500)), random.below(3).to_string());
        let (allowed, journal) = (attempts.to_string(), journal.to_string_lossy());
        let how = [
            "submit",
            "--policy",
            "schedule_run@2",
            "--grace",
            "200ms",
            "--queue",
            queue,
        ];
        let terms = ["--lease", &lease, "--attempts", &allowed, "--priority", &priority];
        let safe = ["--idempotency-key", &name, "--"];
        let what = ["sh", "-c", SCRIPT, "sh", &journal, &name, takes[0], takes[1]];
        let words = [&how[..], &terms, &safe, &what].concat();
        let mut answer = self.home.run(&words);
        if answer.err.contains("the store is busy") {
            // Who is stopped in the middle of a write has the store to itself.
            self.workers.go_on();
            answer = self.home.run(&words);
        }
        let reference = answer.exits(0).out;
        let (_, id) = reference.trim_end().split_once('/').expect("a reference");
        let id = id.to_owned();
        self.known.push(Occurrence { name, id, attempts });
    }
}

/// Rows and runs that go on.
const OPEN: &str = "SELECT count(*) FROM entities WHERE terminal = 0";

const FENCED: &str = "SELECT count(*) FROM transitions WHERE reason_code = 'run.orphaned.fence_committed'";

/// So many occurrences, and so many strikes against those who work on them; then all of them end.
fn survives(occurrences: usize, strikes: usize) {
    let (seed, home) = (seed(), Home::new());
    let mut scene = Scene {
        home: &home,
        workers: Workers::new(&home),
        known: Vec::new(),
        random: Random(seed),
    };
    // Where clocks are shifted nobody else can see that it is stopped.
    scene.submit_as(PATIENT, "plain", [FOR_EVER, "0"]);
    scene.workers.start_all(&mut scene.random);
    for _ in 0..strikes {
        if scene.known.len() < occurrences {
            scene.submit();
        }
        scene.workers.strike(&mut scene.random);
    }
    until(&format!("the first has begun (seed {seed})"), || {
        scene.workers.go_on();
        journal(&home).contains_key("o0")
    });
    scene.workers.kill_all(&mut scene.random);
    drained(&home, seed);
    scene.workers.end();
    check(&home, &scene.known, seed);
}

fn seed() -> u64 {
    let given = std::env::var_os("RUNWARDEN_CHAOS_SEED");
    given
        .and_then(|seed| seed.to_str()?.parse().ok())
        .unwrap_or_else(|| u64::from(std::process::id()))
}

/// Waits until everything has ended, each step in its time.
fn drained(home: &Home, seed: u64) {
    let open = || home.counted(OPEN);
    let mut left = open();
    while left > 0 {
        // What failed to start waits for a while before it is tried again: that is not what is measured here.
        let due = "UPDATE entities SET due_at_ms = 0, next_attempt_at_ms = 0 WHERE stage = 2";
        home.database().execute(due, []).expect("the statement fits");
        let written = || home.counted("SELECT count(*) FROM transitions");
        let before = written();
        until(&format!("{left} that are open go on (seed {seed})"), || {
            written() > before || open() == 0
        });
        left = open();
    }
}

/// What the programs wrote: for each occurrence its lines, each a word, a reference and a fence.
fn journal(home: &Home) -> BTreeMap<String, Vec<(String, String, String)>> {
    let text = std::fs::read_to_string(home.path("journal")).unwrap_or_default();
    let mut lines: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [word, name, reference, fence] = words[..] else {
            panic!("a line of the journal is not whole: {line}");
        };
        let line = (word.to_owned(), reference.to_owned(), fence.to_owned());
        lines.entry(name.to_owned()).or_default().push(line);
    }
    lines
}

fn check(home: &Home, known: &[Occurrence], seed: u64) {
    let host = library(&home.home(), OpenMode::Existing);
    let journal = journal(home);
    for occurrence in known {
        let context = format!("{} ({}) of seed {seed}", occurrence.name, occurrence.id);
        let chain = chain(&host, &occurrence.id);
        let lines = journal.get(&occurrence.name).map(Vec::as_slice).unwrap_or_default();
        check_journal(lines, &chain, occurrence, &context);
        for (row, history) in &chain {
            check_history(row, history, &context);
        }
    }
    let open = "SELECT count(*) FROM runtimes WHERE state <> 'stopped'";
    until(&format!("nothing runs any more (seed {seed})"), || {
        home.counted(open) == 0
    });
    assert_eq!(home.counted(OPEN), 0, "seed {seed}");
    let renewed = home.counted("SELECT sum(renewals) FROM renewal_delays");
    assert!(renewed > 0, "how late renewals were is counted: seed {seed}");
    assert!(home.counted(FENCED) > 0, "nobody was given up: seed {seed}");
}

/// A row and whatever went on where it was given up, each with its history.
fn chain(host: &Host, id: &str) -> Vec<(Entity, Vec<HistoryRow>)> {
    let mut chain = Vec::new();
    let mut next = host.store().load(id).expect("a store");
    while let Some(row) = next {
        let id = Some(row.reference.id.clone());
        let query = HistoryQuery {
            id,
            ..HistoryQuery::default()
        };
        let history = host.store().history(&query).expect("a store");
        next = host.store().successor(&row).expect("a store");
        chain.push((row, history));
    }
    chain
}

fn check_journal(
    lines: &[(String, String, String)],
    chain: &[(Entity, Vec<HistoryRow>)],
    occurrence: &Occurrence,
    context: &str,
) {
    let told = |word: &str| -> Vec<(&str, &str)> {
        let lines = lines.iter().filter(|line| line.0 == word);
        lines
            .map(|(_, reference, fence)| (reference.as_str(), fence.as_str()))
            .collect()
    };
    assert_eq!(told("overlap"), [], "{context}: two attempts at once");
    let begun = told("begin");
    let once: BTreeSet<_> = begun.iter().collect();
    assert_eq!(
        once.len(),
        begun.len(),
        "{context}: one authority, one attempt: {lines:?}"
    );
    let taken = |row: &Entity, history: &[HistoryRow]| {
        let reference = row.reference.to_string();
        let taken = history
            .iter()
            .filter(|step| step.status == "running" && step.reason.code == "run.started.ok");
        (reference, taken.count())
    };
    let taken: BTreeMap<String, usize> = chain.iter().map(|(row, history)| taken(row, history)).collect();
    for (reference, _) in &begun {
        let of_it = begun.iter().filter(|(other, _)| other == reference).count();
        let most = taken.get(*reference).copied().unwrap_or(0);
        assert!(
            of_it <= most,
            "{context}: {reference} began {of_it} times, taken {most} times: {lines:?}"
        );
    }
    let starts: usize = taken.values().sum();
    assert!(
        u64::try_from(starts).is_ok_and(|starts| starts <= occurrence.attempts),
        "{context}: taken {starts} times, {} allowed",
        occurrence.attempts
    );
    let (last, _) = chain.last().expect("it is in the store");
    assert!(last.terminal, "{context}: it is {}", last.status);
    let reference = last.reference.to_string();
    let has_ended = told("end").iter().any(|(ended, _)| *ended == reference);
    if last.success {
        assert!(has_ended, "{context}: a success that nobody saw: {lines:?}");
    } else {
        let code = last.reason.code.as_str();
        // Its attempts were used up, the last by a worker that was silent or died before its program had begun.
        let given_up = matches!(code, "run.failed.lease_attempts_exhausted" | "run.failed.spawn_error");
        assert!(
            given_up && occurrence.attempts == IMPATIENT,
            "{context}: {} ({:?})",
            last.status,
            last.reason
        );
    }
}

/// Whoever was given up was doubted before, with evidence; and nothing follows an end.
fn check_history(row: &Entity, history: &[HistoryRow], context: &str) {
    let statuses: Vec<&str> = history.iter().map(|step| step.status.as_str()).collect();
    for (place, step) in history.iter().enumerate() {
        let before = place.checked_sub(1).map(|before| &history[before]);
        assert_eq!(
            step.previous_status.as_deref(),
            before.map(|before| before.status.as_str()),
            "{context}: {statuses:?}"
        );
        let judged = matches!(step.status.as_str(), "supervisor_unknown" | "orphaned")
            || step.reason.code == "run.failed.lease_attempts_exhausted";
        if judged {
            let evidence = step.reason.evidence.first();
            let fence = evidence.and_then(|evidence| evidence["fence"].as_i64());
            assert!(fence.is_some(), "{context}: on what evidence? {step:?}");
        }
        if step.status == "orphaned" {
            let doubted = before.is_some_and(|before| before.status == "supervisor_unknown");
            assert!(doubted, "{context}: given up without doubt: {statuses:?}");
        }
    }
    let last = history.last().expect("a creation has a row");
    assert_eq!(last.status, row.status, "{context}: {statuses:?}");
}

#[test]
fn no_occurrence_overlaps_itself_and_none_is_lost_whatever_is_done_to_the_workers() {
    survives(16, 25);
}

#[test]
#[ignore = "takes minutes"]
fn hundreds_of_occurrences_survive_a_thousand_strikes_against_the_workers() {
    survives(200, 1_000);
}
