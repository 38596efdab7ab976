//! A small starter: starts the real shim, speaks its protocol, leaves nothing behind.
#![allow(dead_code, unreachable_pub, reason = "every test binary uses a part of it")]
#![expect(
    clippy::disallowed_methods,
    reason = "between two looks at another process, at most for the bound"
)]

use std::fs::{self, File};
use std::io::Write as _;
use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use runwarden_shim::message::{FromShim, PACKET_BYTES, Passed, Present, ToShim};
use runwarden_shim::slot::{self, Cause, Patience, Slot};
use runwarden_shim::spec::{IoMode, Namespace, ParentTie, Spec, StopBy, Window};
use runwarden_shim::{clock, files, packet};

/// No test waits longer for anything.
pub const BOUND: Duration = Duration::from_secs(30);

static NEXT: AtomicU32 = AtomicU32::new(0);

pub struct Run {
    pub directory: PathBuf,
    pub spec: Spec,
    pub stdin: Option<OwnedFd>,
    pub image: Option<OwnedFd>,
    pub stdin_writer: Option<OwnedFd>,
    /// Starts the shim with SIGCHLD ignored.
    pub deaf: bool,
}

impl Run {
    pub fn of(argv: &[&str]) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("runwarden-shim-{}-{number}", std::process::id()));
        fs::create_dir(&directory).expect("a fresh run directory");
        let spec = Spec {
            reference: b"run/test".to_vec(),
            token: b"token-1".to_vec(),
            argv: argv.iter().map(|word| word.as_bytes().to_vec()).collect(),
            environment: vec![b"PATH=/usr/bin:/bin".to_vec()],
            directory: b"/".to_vec(),
            run_directory: directory.as_os_str().as_bytes().to_vec(),
            io: IoMode::NullStdin,
            grace_ms: 10_000,
            timeout_ms: 0,
            stop_by: StopBy::Signal(15),
            parent: ParentTie::Survive,
            finish: Vec::new(),
            window: Window {
                rows: 24,
                columns: 80,
                width: 0,
                height: 0,
            },
            cgroup: None,
            namespace: Namespace::Callers,
            log_limit_bytes: 256 << 20,
        };
        Self {
            directory,
            spec,
            stdin: None,
            image: None,
            stdin_writer: None,
            deaf: false,
        }
    }

    pub fn shell(script: &str) -> Self {
        Self::of(&["sh", "-c", script])
    }

    pub fn with(mut self, change: impl FnOnce(&mut Spec)) -> Self {
        change(&mut self.spec);
        self
    }

    /// Starts the shim and reads its first answer.
    pub fn prepare(self) -> Started {
        let (ours, theirs) = socket_pair();
        let number = theirs.as_raw_fd();
        let mut command = Command::new(env!("CARGO_BIN_EXE_runwarden-shim"));
        command
            .arg("run/test")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let deaf = self.deaf;
        let move_socket = move || {
            // SAFETY: dup2 is async-signal-safe; clearing the flag matters when the number is already 3.
            unsafe {
                libc::dup2(number, 3);
                libc::fcntl(3, libc::F_SETFD, 0);
                if deaf {
                    libc::signal(libc::SIGCHLD, libc::SIG_IGN);
                }
            }
            Ok(())
        };
        // SAFETY: the closure only makes system calls.
        unsafe { command.pre_exec(move_socket) };
        let status = command.status().expect("the shim starts");
        assert!(status.success(), "the shim could not copy itself: {status}");
        drop(theirs);
        let memory = memory_file(&self.spec.encode());
        let present = |fd: &Option<OwnedFd>| {
            if fd.is_some() { Present::Yes } else { Present::No }
        };
        let passed = Passed {
            stdin: present(&self.stdin),
            image: present(&self.image),
            stdin_writer: present(&self.stdin_writer),
        };
        let mut fds: Vec<RawFd> = vec![memory.as_raw_fd()];
        fds.extend(
            [&self.stdin, &self.image, &self.stdin_writer]
                .into_iter()
                .flatten()
                .map(|fd| fd.as_raw_fd()),
        );
        packet::send(ours.as_fd(), &ToShim::Start(passed).encode(), &fds).expect("the start is sent");
        let mut started = Started {
            directory: self.directory,
            control: Some(ours),
            worker: 0,
            shim: 0,
            fds: Vec::new(),
        };
        match started.receive() {
            FromShim::Held { worker, shim, .. } => (started.worker, started.shim) = (worker, shim),
            other => panic!("expected a held worker, got {other:?}"),
        }
        started
    }

    pub fn start(self) -> Started {
        let mut started = self.prepare();
        started.send(&ToShim::Go);
        assert_eq!(started.receive_kept(), FromShim::Started);
        started
    }

    /// Runs to the end; the exit file.
    pub fn finish(self) -> String {
        let started = self.start();
        started.exit_file()
    }
}

pub struct Started {
    pub directory: PathBuf,
    pub control: Option<OwnedFd>,
    pub worker: i32,
    pub shim: i32,
    /// Of the last packet that carried any.
    pub fds: Vec<OwnedFd>,
}

impl Started {
    pub fn send(&self, message: &ToShim) {
        let control = self.control.as_ref().expect("still connected");
        packet::send(control.as_fd(), &message.encode(), &[]).expect("the shim is there");
    }

    pub fn receive(&mut self) -> FromShim {
        let control = self.control.as_ref().expect("still connected");
        let mut fds = [libc::pollfd {
            fd: control.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        }];
        // SAFETY: one valid pollfd.
        let ready = unsafe { libc::poll(fds.as_mut_ptr(), 1, BOUND.as_millis() as i32) };
        assert_eq!(ready, 1, "no packet from the shim within {BOUND:?}");
        let mut bytes = [0; PACKET_BYTES];
        let (length, descriptors) = packet::receive(control.as_fd(), &mut bytes).expect("a packet");
        if !descriptors.is_empty() {
            self.fds = descriptors;
        }
        FromShim::decode(&bytes[..length]).expect("a known packet")
    }

    /// The next packet that is more than a hint.
    pub fn receive_kept(&mut self) -> FromShim {
        loop {
            match self.receive() {
                FromShim::Output => {}
                other => return other,
            }
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_default()
    }

    /// Waits until the shim is gone, then reads the exit file.
    pub fn exit_file(&self) -> String {
        eventually("the shim is gone", || self.lock_is_free().then_some(()));
        String::from_utf8(self.read(files::EXIT)).expect("an exit file in UTF-8")
    }

    /// Waits for the exit file; the shim may live on.
    pub fn ended(&self) -> String {
        eventually("the exit file", || fs::read_to_string(self.path(files::EXIT)).ok())
    }

    pub fn wait_for(&self, name: &str, what: &str) {
        eventually(&format!("{what:?} in {name}"), || {
            String::from_utf8_lossy(&self.read(name)).contains(what).then_some(())
        });
    }

    pub fn lock_is_free(&self) -> bool {
        let Ok(file) = File::open(self.path(files::LOCK)) else {
            return true;
        };
        // SAFETY: no memory involved; the lock is dropped with the file.
        unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
    }

    pub fn ask_stop(&self, index: usize, patience: Patience) {
        write_slot(&self.directory, index, patience);
        // SAFETY: the shim lives: its lock was held when the test got here, and nobody else stops it.
        unsafe { libc::kill(self.shim, libc::SIGUSR1) };
    }

    /// Waits until none of the processes that carry the test's mark in their command line live.
    pub fn assert_gone(&self, pid: i32) {
        let gone = eventually("the end of a member", || {
            let stat = runwarden_shim::stat::read(pid);
            Some(stat.is_err() || stat.is_ok_and(|stat| stat.is_dead()))
        });
        assert!(gone, "{pid} lives");
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if !self.lock_is_free() {
            self.ask_stop(0, Patience::Force);
            self.control = None;
            let since = Instant::now();
            while !self.lock_is_free() && since.elapsed() < BOUND {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

pub fn write_slot(directory: &Path, index: usize, patience: Patience) {
    let slot = Slot {
        cause: Cause::Kill,
        patience,
        at_ms: clock::boottime_ms(),
        code: "run.cancelled.manual_kill".to_owned(),
        actor: "operator:test".to_owned(),
        note: String::new(),
    };
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(directory.join(files::STOP));
    let file = file.expect("the stop file");
    file.write_all_at(&slot.padded(), (index * slot::BYTES) as u64)
        .expect("a slot written");
}

/// Waits with a bound for what is needed.
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(since.elapsed() < BOUND, "not within {BOUND:?}: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The value of a key in the flat part of an exit file.
#[track_caller]
pub fn assert_has(exit: &str, parts: &[&str]) {
    for part in parts {
        assert!(exit.contains(part), "{part} is not in {exit}");
    }
}

pub fn rows_of(terminal: &OwnedFd) -> u16 {
    let mut size = libc::winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: TIOCGWINSZ writes one winsize.
    unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCGWINSZ, &raw mut size) };
    size.ws_row
}

pub fn pipe() -> (OwnedFd, OwnedFd) {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    (reader.into(), writer.into())
}

fn socket_pair() -> (OwnedFd, OwnedFd) {
    let mut ends = [-1; 2];
    // SAFETY: room for two descriptors, which are ours from then on.
    unsafe {
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
        assert_eq!(libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()), 0);
        (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))
    }
}

fn memory_file(bytes: &[u8]) -> File {
    // SAFETY: a literal name; the descriptor is ours.
    let mut file = unsafe { File::from_raw_fd(libc::memfd_create(c"spec".as_ptr(), libc::MFD_CLOEXEC)) };
    file.write_all(bytes).expect("memory");
    file
}
