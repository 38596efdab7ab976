//! A policy that never answers costs its own transition, and nobody else's.

use std::process::Child;

use runwarden_test_guests::{Mode, hostile};

use crate::harness::{Home, until};

/// How many commands hang.
const HANGING: usize = 3;

/// More processor time than a command needs to reach its guard, in ticks of 10 ms.
const REACHED_TICKS: u64 = 60;

/// Commands that hang, ended when the test is over, however it ends.
struct Hanging(Vec<Child>);

impl Drop for Hanging {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Hanging {
    fn all_hang(&mut self) -> bool {
        self.0
            .iter_mut()
            .all(|child| child.try_wait().expect("a child of ours").is_none())
    }
}

/// Processor time in user mode so far; none when it is gone.
fn ticks(child: &Child) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).ok()?;
    stat.rsplit(')').next()?.split_whitespace().nth(11)?.parse().ok()
}

#[test]
fn while_guards_loop_transitions_of_other_entities_go_on() {
    let home = Home::new();
    let file = home.path("gadget.wasm");
    std::fs::write(&file, hostile(Mode::GuardLoops)).expect("a file");
    let file = file.to_string_lossy();
    let most = ["--fuel", "20000000000", "--wall", "10s"];
    home.done(&[&["policy", "install", &file, "--activate"], &most[..]].concat());
    for number in 0..HANGING {
        home.done(&["create", "gadget", "--id", &format!("g-{number}")]);
    }
    home.done(&["create", "gadget", "--id", "other"]);
    // A machine that is busy enough lets them end first; then they are made to hang again.
    let went_on = (0..5).any(|round| others_go_on(&home, round));
    assert!(went_on, "the loops ended before anything else was done");
    // Nothing was written by those that hung.
    assert_eq!(home.json(&["show", "g-0"])["version"], 1);
}

/// Makes guards loop, does other things, and tells whether all of them still looped when that was done.
fn others_go_on(home: &Home, round: usize) -> bool {
    let asked = |number| {
        home.start(&[
            "transition",
            &format!("g-{number}"),
            "held",
            "--reason",
            "gadget.held.asked",
        ])
    };
    let mut hanging = Hanging((0..HANGING).map(asked).collect());
    until("each of them is in its guard, or over", || {
        hanging
            .0
            .iter()
            .all(|child| ticks(child).is_none_or(|ticks| ticks >= REACHED_TICKS))
            || !hanging.all_hang()
    });
    // Another kind, and the very kind whose guard loops, along an edge that has none.
    let session = format!("s-{round}");
    home.done(&["create", "session", "--id", &session]);
    home.done(&["transition", &session, "completed", "--reason", "run.completed.ok"]);
    let gadget = format!("g-free-{round}");
    home.done(&["create", "gadget", "--id", &gadget]);
    home.done(&["transition", &gadget, "done", "--reason", "gadget.done.ok"]);
    assert_eq!(home.json(&["show", &gadget])["status"], "done");
    hanging.all_hang()
}
