//! The inventory: what may be running, as the store keeps it (SEMANTICS 9).

use serde::{Deserialize, Serialize};

use super::{Actor, DurationMs, Reference, Timestamp};

/// Where something runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuntimeKind {
    /// Processes of this machine.
    Local,
    /// A container; never judged from here.
    Container,
    /// Another machine by ssh; never judged from here.
    Ssh,
    /// Anything else; never judged from here.
    Other,
}

/// How far a started set of processes has come.
///
/// ```text
/// starting ──▶ running ──▶ stopping ──▶ stopped
///                 │  └──▶ lingering ──────▲
///                 └─────▶ lost ───────────┘
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuntimeState {
    /// The intent is recorded; no identity yet.
    Starting,
    /// The identity is recorded and the gate was opened.
    Running,
    /// A stop was asked for.
    Stopping,
    /// The worker ended, members of its set live on.
    Lingering,
    /// The set was observed empty, or nothing was ever started.
    Stopped,
    /// The shim is gone and nobody took over.
    Lost,
}

/// What holds the set together, chosen once per run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Containment {
    /// A cgroup of its own.
    Cgroup,
    /// The shim adopts every orphan of the set.
    Subreaper,
    /// A pid namespace of its own.
    PidNamespace,
    /// Nothing but the process group.
    Group,
    /// Not ours to hold.
    None,
}

/// Defines the word of each variant of an enum, for columns and output, and the way back.
macro_rules! words {
    ($name:ident { $($variant:ident => $word:literal),+ $(,)? }) => {
        impl $name {
            /// The word for it, in columns and output.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// The value a word names.
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

words!(RuntimeKind { Local => "local", Container => "container", Ssh => "ssh", Other => "other" });
words!(RuntimeState {
    Starting => "starting",
    Running => "running",
    Stopping => "stopping",
    Lingering => "lingering",
    Stopped => "stopped",
    Lost => "lost",
});
words!(Containment {
    Cgroup => "cgroup",
    Subreaper => "subreaper",
    PidNamespace => "pid_namespace",
    Group => "group",
    None => "none",
});

/// The machine, boot and namespaces in which process numbers mean something.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The machine's name for itself: its machine id where it has one.
    pub host: String,
    /// The kernel's id of this boot.
    pub boot_id: String,
    /// Inode of the pid namespace, where it could be read.
    pub pid_namespace: Option<i64>,
    /// Inode of the time namespace, where it could be read; start ticks are shifted by it.
    pub time_namespace: Option<i64>,
}

/// The layers by which a process is known (PROCESS 1); what the kernel did not give is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// Its number, which alone names nothing.
    pub pid: i64,
    /// Start time in clock ticks since boot.
    pub start_ticks: Option<i64>,
    /// Inode on pidfs, never used twice in a boot.
    pub pidfs_inode: Option<i64>,
    /// File handle on pidfs.
    pub pidfs_handle: Option<Vec<u8>>,
}

/// That somebody wants the set stopped, recorded before anything is signalled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StopIntent {
    /// Who wants it.
    pub actor: Actor,
    /// What for, in words.
    pub note: Option<String>,
    /// From the first signal to KILL.
    pub grace: DurationMs,
    /// When it was wanted.
    pub at: Timestamp,
}

/// One started set of processes.
#[derive(Clone, Debug, PartialEq)]
pub struct Runtime {
    /// The store's number for it; zero before it is stored.
    pub id: i64,
    /// Whose it is.
    pub owner: Reference,
    /// Where it runs.
    pub kind: RuntimeKind,
    /// How far it has come.
    pub state: RuntimeState,
    /// A stop ended without proof; it is tried again.
    pub stop_unconfirmed: bool,
    /// Where its numbers mean something.
    pub place: Place,
    /// The worker: the program that was asked for.
    pub worker: Option<ProcessIdentity>,
    /// The shim: parent of the worker, reaper of the set.
    pub shim: Option<ProcessIdentity>,
    /// Random; in the worker's environment and in the exit file.
    pub attempt_token: String,
    /// The identity level the record was taken at.
    pub level: Option<String>,
    /// What holds the set together.
    pub containment: Containment,
    /// The worker's process group, when it is its own.
    pub process_group: Option<i64>,
    /// The set's cgroup.
    pub cgroup: Option<Vec<u8>>,
    /// The working directory.
    pub cwd: Option<Vec<u8>>,
    /// The run directory.
    pub run_dir: Option<Vec<u8>>,
    /// What a remote system calls it; kept apart from process numbers.
    pub remote_handle: Option<String>,
    /// What its program needs to take up its work again.
    pub resume_token: Option<String>,
    /// Why it is being stopped.
    pub stop_intent: Option<StopIntent>,
    /// When it was recorded.
    pub created_at: Timestamp,
    /// When it was last written.
    pub updated_at: Timestamp,
}

impl Runtime {
    /// Whether nothing of it may be running any more.
    pub const fn is_stopped(&self) -> bool {
        matches!(self.state, RuntimeState::Stopped)
    }
}
