//! How a process ended is observed: a signal of ours, of others, or of a kernel that wants memory.

use std::path::{Path, PathBuf};

use crate::harness::{Home, lives, until};

#[test]
fn a_signal_from_elsewhere_is_not_taken_for_ours() {
    let home = Home::new();
    home.run(&["run", "--id", "one", "--", "sh", "-c", "kill -KILL $$"])
        .exits(137);
    let shown = home.over("one");
    assert_eq!(shown["fields"]["cause"], "signal");
    assert_eq!(shown["fields"]["term_signal"], 9);
    assert_eq!(home.exit_record("one")["oom_kills"], 0);
}

/// A memory cgroup of the old hierarchy with a small limit; gone with the test.
struct Limited(PathBuf);

impl Limited {
    fn new() -> Option<Self> {
        let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        let name = own.lines().find_map(|line| line.split_once(":memory:"))?.1;
        let base = Path::new("/sys/fs/cgroup/memory").join(name.trim_start_matches('/'));
        let path = base.join(format!("oom-test-{}", std::process::id()));
        std::fs::create_dir(&path).ok()?;
        let limited = Self(path);
        std::fs::write(limited.0.join("memory.limit_in_bytes"), "64M").ok()?;
        // Absent where swap is not accounted.
        let _ = std::fs::write(limited.0.join("memory.memsw.limit_in_bytes"), "64M");
        Some(limited)
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        until("the memory group is removed", || std::fs::remove_dir(&self.0).is_ok());
    }
}

#[test]
fn a_program_the_kernel_killed_for_want_of_memory_says_so() {
    let Some(limited) = Limited::new() else { return };
    let home = Home::new();
    // The program joins the group before it is the run's: the shim, which is small, is in it as well.
    let join = format!(
        "echo $$ > {}/cgroup.procs; exec {} run --id one -- tail /dev/zero",
        limited.0.display(),
        crate::harness::PROGRAM
    );
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &join]).env("RUNWARDEN_HOME", home.home());
    let output = command.output().expect("a shell");
    assert_eq!(
        output.status.code(),
        Some(137),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let shown = home.over("one");
    assert_eq!(shown["fields"]["cause"], "oom", "{shown}");
    assert_eq!(shown["status"], "failed");
    assert!(home.exit_record("one")["oom_kills"].as_u64() > Some(0));
}

#[test]
fn a_run_that_is_to_die_with_its_command_does_so_however_that_ends() {
    let home = Home::new();
    let told = home.path("told");
    let script = format!(
        "(setsid sleep 600 & echo $! > {0}.x); echo $(cat {0}.x) $$ > {0}; exec sleep 600",
        told.display()
    );
    let mut command = home.start(&[
        "run",
        "--die-with-parent",
        "--id",
        "one",
        "--grace",
        "20s",
        "--",
        "sh",
        "-c",
        &script,
    ]);
    let pids = home.told("told");
    command.kill().expect("the command is killed");
    command.wait().expect("the command ends");
    let shown = home.over("one");
    for pid in pids.split(' ') {
        assert!(!lives(pid), "{pid}");
    }
    assert_eq!(home.exit_record("one")["cause"], "parent_gone");
    assert_eq!(shown["reason"]["code"], "run.cancelled.system");
    assert_eq!(shown["fields"]["cause"], "kill");
}

#[test]
fn a_run_that_is_to_die_with_its_command_cannot_be_detached() {
    let home = Home::new();
    home.run(&["run", "--die-with-parent", "--detach", "--", "true"])
        .exits(64);
    home.run(&["run", "--die-with-parent", "--on-hangup", "detach", "--", "true"])
        .exits(125);
}
