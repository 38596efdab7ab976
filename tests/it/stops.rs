//! A stop is over when the set is empty, whoever of it ended first.

use crate::harness::{Home, until};

#[test]
fn a_leader_that_obeys_does_not_end_the_stop_of_a_child_that_does_not() {
    let home = Home::new();
    let child = home.path("child.pid");
    let script = format!(
        "(trap '' TERM; exec sh -c 'echo $$ > {}; while :; do sleep 1; done') & trap 'exit 0' TERM; wait",
        child.display()
    );
    home.done(&["run", "--detach", "--id", "r", "--", "sh", "-c", &script]);
    until("the child to be there", || {
        std::fs::read_to_string(&child).is_ok_and(|pid| pid.ends_with('\n'))
    });
    let killed = home.json(&["kill", "r", "--grace", "300ms"]);
    let target = &killed["targets"][0];
    assert_eq!(
        (&target["outcome"], &target["signal"]),
        (&"killed".into(), &"sigkill".into()),
        "{killed}"
    );
    let pid = std::fs::read_to_string(&child).expect("it was written");
    assert!(
        !std::path::Path::new("/proc").join(pid.trim()).exists(),
        "the child lives on"
    );
    let entity = home.json(&["show", "r"]);
    assert_eq!(entity["status"], "cancelled");
    assert_eq!(entity["fields"]["exit_code"], 0, "the leader's own code is kept");
    assert_eq!(entity["reason"]["code"], "run.cancelled.force_kill");
}
