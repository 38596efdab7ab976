//! The exit file: how the run ended, written into space that was reserved before it began.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};

use runwarden_shim::files;
use runwarden_shim::notes::Began;
use runwarden_shim::spared::Record;

use crate::members::Member;
use crate::output::Missing;
use crate::sys::{self, Errno};
use crate::worker::{End, Failure};

/// The stop that was going on, as far as it matters to the record.
#[derive(Clone)]
pub(crate) struct StopRecord {
    pub(crate) cause: &'static str,
    pub(crate) slot: usize,
    pub(crate) at_ms: u64,
    /// The strongest signal sent so far.
    pub(crate) signal: String,
    pub(crate) forced: Forced,
    pub(crate) progress: Progress,
}

/// Whether a stop is at work or was given up.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    AtWork,
    GivenUp,
}

/// Whether it came to SIGKILL.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forced {
    No,
    Yes,
}

/// What is known of the set.
pub(crate) enum SetState {
    Empty(Proof),
    Living(Vec<Member>),
}

/// That nobody of the set is left.
#[derive(Clone)]
pub(crate) struct Proof {
    pub(crate) by: ProvedBy,
    /// Who lives below the shim and is of another run.
    pub(crate) spared: Vec<Record>,
}

/// What says that nobody of the set is left: the strongest there was.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProvedBy {
    /// ECHILD: the shim has no child at all.
    NoChild,
    /// Every child of the shim is of another run.
    NoChildButSpared,
    /// One of the above, and the kernel counts nobody in the cgroup.
    CgroupEmpty,
    /// ECHILD, the init of the set's namespace included.
    NamespaceEnded,
    /// A look at every process, caught up with the newest, found no member of an adopted set.
    Scan,
}

impl ProvedBy {
    fn text(self) -> &'static str {
        match self {
            Self::NoChild => "subreaper_echild",
            Self::NoChildButSpared => "subreaper_but_for_spared",
            Self::CgroupEmpty => "cgroup_empty",
            Self::NamespaceEnded => "namespace_ended",
            Self::Scan => "token_scan",
        }
    }
}

/// The end of the worker. Filled once; only what is known of the set changes later.
pub(crate) struct Ending {
    pub(crate) end: Option<End>,
    pub(crate) failure: Option<Failure>,
    /// How many processes the kernel killed for want of memory in the worker's memory cgroup while it ran.
    pub(crate) oom_kills: u64,
    /// `exit`, `signal`, `oom`, `unobserved`, or the cause of the stop that was going on.
    pub(crate) cause: &'static str,
    pub(crate) stop: Option<StopRecord>,
    pub(crate) ended_epoch_ms: u64,
    pub(crate) ended_boottime_ms: u64,
}

/// Whose child the worker is: only a parent sees what it used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parent {
    Us,
    Another,
}

/// Writes the exit file, again and again if need be.
pub(crate) struct ExitFile {
    pub(crate) token: String,
    pub(crate) worker: i32,
    /// Whose child the worker is.
    pub(crate) parent: Parent,
    /// What the first shim had written before it was killed, up to what it knew of the set.
    kept: Option<String>,
    boot_id: String,
    reserves: [Option<File>; 2],
    next: usize,
}

impl ExitFile {
    /// Reserves room for two writings.
    pub(crate) fn reserve(token: String) -> Result<Self, Errno> {
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let boot_id = boot_id.trim_end().to_owned();
        let mut exit = Self {
            token,
            worker: 0,
            parent: Parent::Us,
            kept: None,
            boot_id,
            reserves: [None, None],
            next: 0,
        };
        for (file, name) in exit.reserves.iter_mut().zip(files::EXIT_RESERVES) {
            match reserve(name) {
                Ok(reserved) => *file = Some(reserved),
                Err(errno) => {
                    exit.release();
                    return Err(errno);
                }
            }
        }
        Ok(exit)
    }

    /// Keeps what another shim saw of the worker's end: from now on only what is known of the set is written anew.
    pub(crate) fn keep(&mut self) {
        let text = fs::read_to_string(files::EXIT).unwrap_or_default();
        let ours = text.contains(&format!("\"token\":{}", quoted(self.token.as_bytes())));
        self.kept = text.find(SET).filter(|_| ours).map(|end| text[..end].to_owned());
    }

    /// Removes the reserves of a run that never was, or is over.
    pub(crate) fn release(&self) {
        for name in files::EXIT_RESERVES {
            let _ = fs::remove_file(name);
        }
    }

    /// Makes the exit file durable: content, then name.
    pub(crate) fn write(&mut self, text: &str) -> io::Result<()> {
        let name = files::EXIT_RESERVES[self.next];
        let file = match self.reserves[self.next].take() {
            Some(file) => file,
            None => create(name)?,
        };
        file.write_all_at(text.as_bytes(), 0)?;
        file.set_len(text.len() as u64)?;
        file.sync_data()?;
        fs::rename(name, files::EXIT)?;
        File::open(".")?.sync_all()?;
        // The name is free again, and if this replaced an older file so is its space.
        self.reserves[self.next] = reserve(name).ok();
        self.next = 1 - self.next;
        Ok(())
    }

    /// The content of the exit file; never longer than its reserve.
    pub(crate) fn text(&self, ending: &Ending, started: Began, set: &SetState, missing: Missing) -> String {
        let mut text = String::with_capacity(files::EXIT_BYTES);
        if let Some(kept) = &self.kept {
            text.push_str(kept);
            push_set(&mut text, set);
            text.push_str("}\n");
            return text;
        }
        let _ = write!(
            text,
            "{{\"v\":1,\"token\":{},\"worker_pid\":{}",
            quoted(self.token.as_bytes()),
            self.worker
        );
        push_status(&mut text, ending);
        let _ = write!(
            text,
            ",\"started_at_ms\":{},\"ended_at_ms\":{},\"duration_ms\":{}",
            started.epoch_ms,
            ending.ended_epoch_ms,
            ending.ended_boottime_ms.saturating_sub(started.boottime_ms),
        );
        let usage = ending.end.as_ref().and_then(|end| end.usage.as_ref());
        let _ = write!(
            text,
            ",\"user_ms\":{},\"system_ms\":{},\"max_rss_bytes\":{}",
            usage.map_or(0, |usage| milliseconds(usage.ru_utime)),
            usage.map_or(0, |usage| milliseconds(usage.ru_stime)),
            usage.map_or(0, |usage| usage.ru_maxrss * 1024),
        );
        let _ = write!(
            text,
            ",\"boot_id\":{},\"oom_kills\":{},\"lost_output_bytes\":{},\"dropped_output_bytes\":{}",
            quoted(self.boot_id.as_bytes()),
            ending.oom_kills,
            missing.lost_bytes,
            missing.dropped_bytes,
        );
        match ending.failure {
            None => text.push_str(",\"spawn_error\":null"),
            Some(Failure { stage, errno }) => {
                let _ = write!(
                    text,
                    ",\"spawn_error\":{{\"stage\":\"{}\",\"errno\":{errno}}}",
                    stage.text()
                );
            }
        }
        if self.parent == Parent::Another {
            text.push_str(",\"written_by\":\"adopter\"");
        }
        push_set(&mut text, set);
        text.push_str("}\n");
        text
    }
}

fn push_status(text: &mut String, ending: &Ending) {
    // A worker that never became the program has no status of the program's.
    let status = ending
        .end
        .as_ref()
        .filter(|_| ending.failure.is_none())
        .and_then(|end| end.status);
    let code = status
        .filter(|status| libc::WIFEXITED(*status))
        .map(|status| libc::WEXITSTATUS(status));
    let signal = status
        .filter(|status| libc::WIFSIGNALED(*status))
        .map(|status| libc::WTERMSIG(status));
    let core = status.is_some_and(|status| libc::WIFSIGNALED(status) && libc::WCOREDUMP(status));
    let _ = write!(
        text,
        ",\"raw_status\":{},\"exit_code\":{},\"term_signal\":{},\"core_dumped\":{core},\"cause\":\"{}\"",
        number_or_null(status),
        number_or_null(code),
        number_or_null(signal),
        ending.cause,
    );
    match &ending.stop {
        None => text.push_str(",\"stop\":null"),
        Some(stop) => {
            let forced = stop.forced == Forced::Yes;
            let given_up = stop.progress == Progress::GivenUp;
            let _ = write!(
                text,
                ",\"stop\":{{\"cause\":\"{}\",\"slot\":{},\"at_ms\":{},\"signal\":\"{}\",\"forced\":{forced},\
                 \"given_up\":{given_up}}}",
                stop.cause, stop.slot, stop.at_ms, stop.signal,
            );
        }
    }
}

/// Where the last part of the text begins.
const SET: &str = ",\"set\":{";

/// The last part of the text, so that it can take what room is left.
fn push_set(text: &mut String, set: &SetState) {
    match set {
        SetState::Empty(proof) => {
            let _ = write!(
                text,
                ",\"set\":{{\"empty\":true,\"proof\":\"{}\",\"survivors\":[],\"survivors_total\":0,\"spared\":[",
                proof.by.text()
            );
            let entry = |record: &Record| {
                let reference = quoted(record.reference.as_bytes());
                format!("{{\"ref\":{reference},\"pid\":{}}}", record.pid)
            };
            push_entries(text, proof.spared.iter().map(entry));
        }
        SetState::Living(members) => {
            let _ = write!(
                text,
                ",\"set\":{{\"empty\":false,\"proof\":null,\"survivors_total\":{},\"survivors\":[",
                members.len()
            );
            push_entries(text, members.iter().map(survivor));
        }
    }
}

fn survivor(Member { pid, stat }: &Member) -> String {
    let uid = runwarden_shim::stat::user_of(*pid).map_or("null".to_owned(), |uid| uid.to_string());
    let (name, state) = (quoted(stat.name()), char::from(stat.state));
    format!("{{\"pid\":{pid},\"comm\":{name},\"state\":\"{state}\",\"uid\":{uid}}}")
}

/// As many entries of the last list of the text as there is room for, and its end.
fn push_entries(text: &mut String, entries: impl Iterator<Item = String>) {
    for (index, entry) in entries.enumerate() {
        if text.len() + entry.len() + 8 > files::EXIT_BYTES {
            break;
        }
        if index > 0 {
            text.push(',');
        }
        text.push_str(&entry);
    }
    text.push_str("]}");
}

/// A JSON string; bytes that are not UTF-8 are replaced.
fn quoted(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for character in String::from_utf8_lossy(bytes).chars() {
        match character {
            '"' | '\\' => {
                text.push('\\');
                text.push(character);
            }
            control if control.is_control() => {
                let _ = write!(text, "\\u{:04x}", u32::from(control));
            }
            other => text.push(other),
        }
    }
    text.push('"');
    text
}

fn number_or_null(number: Option<i32>) -> String {
    number.map_or("null".to_owned(), |number| number.to_string())
}

fn milliseconds(time: libc::timeval) -> u64 {
    u64::try_from(time.tv_sec).unwrap_or(0) * 1000 + u64::try_from(time.tv_usec).unwrap_or(0) / 1000
}

fn create(name: &str) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(name)
}

fn reserve(name: &str) -> Result<File, Errno> {
    let file = create(name).map_err(|error| sys::number(&error))?;
    sys::reserve(&file, files::EXIT_BYTES)?;
    Ok(file)
}
