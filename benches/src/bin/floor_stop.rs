//! The floor of a stop: a program that starts a tree, kills it by one means of the kernel and waits for that means' proof.
//! `floor_stop pidfd|cgroup|subreaper SCRIPT` prints the microseconds from the first signal to the proof.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions};

/// Nothing that is measured takes as long.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [means, script] = words.as_slice() else {
        bail!("usage: floor_stop pidfd|cgroup|subreaper SCRIPT");
    };
    let took = match means.as_str() {
        "pidfd" => by_pidfd(script)?,
        "cgroup" => by_cgroup(script)?,
        "subreaper" => by_subreaper(script)?,
        other => bail!("no such means: {other}"),
    };
    #[expect(clippy::print_stdout, reason = "it is what this program is for")]
    {
        println!("{}", took.as_micros());
    }
    Ok(())
}

/// Starts the script and waits for its first line.
fn started(script: &str) -> Result<Child> {
    let mut child = Command::new("/bin/sh")
        .args(["-c", script])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().context("a pipe")?).read_line(&mut line)?;
    ensure!(line == "ready\n", "the script said {line:?}");
    Ok(child)
}

/// The worker alone, through a descriptor: what it started lives on and ends by itself.
fn by_pidfd(script: &str) -> Result<Duration> {
    let mut child = started(script)?;
    let pid = Pid::from_raw(child.id().cast_signed()).context("a process")?;
    let held = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
    let since = Instant::now();
    rustix::process::pidfd_send_signal(&held, Signal::KILL)?;
    poll(&mut [PollFd::new(&held, PollFlags::IN)], None)?;
    let took = since.elapsed();
    child.wait()?;
    Ok(took)
}

/// All members of a group at once; the proof is that it has none.
fn by_cgroup(script: &str) -> Result<Duration> {
    let group = Group::new()?;
    let script = format!("echo $$ > {}/cgroup.procs; {script}", group.path.display());
    let mut child = started(&script)?;
    let since = Instant::now();
    fs::write(group.path.join("cgroup.kill"), "1")?;
    while !fs::read_to_string(group.path.join("cgroup.events"))?.contains("populated 0") {
        ensure!(since.elapsed() < PATIENCE, "the group does not empty");
    }
    let took = since.elapsed();
    child.wait()?;
    Ok(took)
}

/// A group that is removed at the end.
struct Group {
    path: PathBuf,
}

impl Group {
    fn new() -> Result<Self> {
        let hierarchies = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(Path::new);
        let root = hierarchies.iter().find(|root| root.join("cgroup.procs").exists());
        let root = root.context("no cgroup v2 is mounted where it usually is")?;
        let path = root.join(format!("floor-stop-{}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Self { path })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.path);
    }
}

/// Everything below this process, again and again; the proof is that it has no child.
fn by_subreaper(script: &str) -> Result<Duration> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    drop(started(script)?);
    let since = Instant::now();
    loop {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        for pid in below(own).into_iter().filter_map(Pid::from_raw) {
            // Gone already, or it is next time's.
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(rustix::io::Errno::CHILD) => return Ok(since.elapsed()),
                Err(error) => return Err(error.into()),
            }
        }
        ensure!(since.elapsed() < PATIENCE, "there is always another child");
    }
}

/// All descendants, as far as one walk sees them. Their numbers are safe to signal: only this process reaps them, or
/// their parent, whose number would have to be taken within the microseconds until the signal.
fn below(pid: i32) -> Vec<i32> {
    let mut found = Vec::new();
    let mut open = vec![pid];
    while let Some(pid) = open.pop() {
        let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        let children = list
            .split_ascii_whitespace()
            .filter_map(|word| word.parse::<i32>().ok());
        let first = found.len();
        found.extend(children);
        open.extend_from_slice(&found[first..]);
    }
    found
}
