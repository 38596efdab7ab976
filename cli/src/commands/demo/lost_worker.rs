//! The step in which a worker is killed, and two versions of a policy tell two stories of it.

use std::process::{Child, Stdio};

use super::{Demo, Step, expect, until};

/// Hangs at its first attempt, and succeeds at the next.
const PROGRAM: &str = "test \"$RUNWARDEN_ATTEMPT\" -gt 1 || exec sleep 1000";

impl Demo {
    /// The same work under both versions on one worker, which is killed: version 1 queues it again at once, version 2 stops
    /// what was left of it first.
    pub(super) fn a_worker_is_killed(&self) -> Step {
        for (id, policy) in [("one-stage", "schedule_run@1"), ("two-stages", "schedule_run@2")] {
            let submit = [
                "submit", "--id", id, "--policy", policy, "--lease", "500ms", "--cwd", "/",
            ];
            self.holds(&[&submit[..], &["--", "sh", "-c", PROGRAM]].concat())?;
        }
        let killed = self.worker()?;
        until("both to run", || {
            self.has("one-stage", "running") && self.has("two-stages", "running")
        })?;
        let both_run = || self.runs().is_ok_and(|runs| runs == 2);
        until("both of their runs", both_run)?;
        self.holds(&["queue", "ls"])?;
        drop(killed);
        let next = self.worker()?;
        until("the old way to queue it again", || self.has("one-stage", "completed"))?;
        until("the new way to give it up", || self.has("two-stages", "orphaned"))?;
        let followed = || {
            self.successor_of("two-stages")
                .is_ok_and(|status| status == "completed")
        };
        until("its successor to end", followed)?;
        drop(next);
        self.holds(&["history", "one-stage"])?;
        self.holds(&["history", "two-stages"])?;
        self.holds(&["why", "two-stages"])?;
        // The old way left its first attempt running beside the second; the new way stopped it.
        expect("what is left of the first attempts", self.runs()?, 1)?;
        self.holds(&["kill", "--all", "--grace", "0"])
    }

    /// A worker in the background, killed when it is dropped.
    fn worker(&self) -> Result<Killed, String> {
        let arguments = ["worker", "--slots", "2", "--lease-grace", "200ms", "--quiet"];
        let mut command = self.command(&arguments)?;
        let started = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        started.map(Killed).map_err(|error| error.to_string())
    }

    fn has(&self, id: &str, status: &str) -> bool {
        self.entity(id).is_ok_and(|entity| entity["status"] == status)
    }

    /// How many runs of queued work go on.
    fn runs(&self) -> Result<usize, String> {
        let answer = self.ask(&["ls", "sessions", "--live", "--json"])?;
        let runs: Vec<serde_json::Value> = serde_json::from_str(&answer.out).map_err(|error| error.to_string())?;
        let begun = |run: &&serde_json::Value| run["runtime"]["state"] == "running";
        Ok(runs.iter().filter(begun).count())
    }

    /// The status of the attempt that follows.
    fn successor_of(&self, id: &str) -> Result<String, String> {
        let answer = self.ask(&["ls", "schedule_runs", "--all", "--json"])?;
        let rows: Vec<serde_json::Value> = serde_json::from_str(&answer.out).map_err(|error| error.to_string())?;
        let follows = |row: &&serde_json::Value| row["lineage"]["chain_parent"] == id;
        let found = rows.iter().find(follows).ok_or("nothing follows")?;
        Ok(found["status"].as_str().unwrap_or_default().to_owned())
    }
}

/// A process that is killed when it is dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // One that has ended already is only reaped.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
