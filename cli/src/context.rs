//! Where a command runs: its home, its store, its writers, and what the environment says.

use std::cell::{OnceCell, RefCell};
use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use runwarden_host::model::{Actor, Entity, Protected, Reference};
use runwarden_host::policy::Limits;
use runwarden_host::store::{OpenMode, StoreError, Tuning};
use runwarden_host::verbs::outbox::deliver_own;
use runwarden_host::verbs::resolve;
use runwarden_host::{Clock, Config, Error, Host};

use crate::args::Global;
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;
use crate::output::{Output, Page};

/// The shim, built with this program and written out when a run needs it.
const SHIM: &[u8] = include_bytes!(env!("RUNWARDEN_SHIM"));

/// How long one write of a kill waits for another process's lock.
const STOP_TURN: Duration = Duration::from_secs(1);

/// Where a command runs.
pub(crate) struct Context {
    /// The writers.
    pub(crate) output: Output,
    config: Config,
    warned: OnceCell<()>,
    /// The stores that this command opened: whatever it ended is told when it has said what it did.
    opened: RefCell<Vec<Arc<Host>>>,
}

impl Context {
    /// Reads options and environment; opens nothing.
    pub(crate) fn new(global: &Global, output: Output) -> Outcome<Self> {
        let home = std::path::absolute(home(global)?)
            .map_err(|error| Failure::usage("the home has no absolute path").cause(error.to_string()))?;
        if let Some(place) = variable("RUNWARDEN_CRASH_AT") {
            runwarden_host::crash::choose(&place.to_string_lossy());
        }
        let program = std::env::current_exe().map_err(|error| {
            Failure::new(Exit::IO, "system", "cannot find this program's own file").cause(error.to_string())
        })?;
        let config = Config {
            home,
            database: database(global)?,
            limits: Limits::DEFAULT,
            clock: Clock::System,
            compiler: Some(program.clone()),
            program,
            shim: SHIM,
            variable,
        };
        Ok(Self {
            output,
            config,
            warned: OnceCell::new(),
            opened: RefCell::default(),
        })
    }

    /// What a host is opened with.
    pub(crate) fn config(&self) -> Config {
        self.config.clone()
    }

    /// Opens the store, making it if it is missing.
    pub(crate) fn create(&self) -> Outcome<Arc<Host>> {
        Ok(self.keep(Host::create(self.config.clone())?))
    }

    /// Opens the store that is there to read and to write.
    pub(crate) fn open(&self) -> Outcome<Arc<Host>> {
        Ok(self.keep(Host::open(self.config.clone(), OpenMode::Existing)?))
    }

    /// Opens the store that is there to stop what runs: a store that cannot be written keeps nobody alive, so it is waited
    /// for in short turns, and one that can only be read is read.
    pub(crate) fn open_to_stop(&self) -> Outcome<Arc<Host>> {
        let tuning = Tuning {
            busy_wait: STOP_TURN,
            ..Tuning::default()
        };
        let opened = match Host::open_tuned(self.config.clone(), OpenMode::Existing, tuning) {
            Err(Error::Store(StoreError::ReadOnly { .. })) => Host::open(self.config.clone(), OpenMode::ReadOnly),
            other => other,
        };
        Ok(self.keep(opened?))
    }

    /// Opens the store that is there for a command that only reads, also where it cannot be written.
    pub(crate) fn read(&self) -> Outcome<Arc<Host>> {
        Ok(self.keep(self.readable()?))
    }

    /// The same if the store is there.
    pub(crate) fn read_if_present(&self) -> Outcome<Option<Arc<Host>>> {
        match self.readable() {
            Ok(host) => Ok(Some(self.keep(host))),
            Err(Error::Store(StoreError::Missing { .. })) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens the store for a command that reads what is installed: makes it, and brings the bundled policies into it,
    /// where that can be done.
    pub(crate) fn read_or_create(&self) -> Outcome<Arc<Host>> {
        let made = Host::open(self.config.clone(), OpenMode::Create).and_then(|host| {
            host.ensure_bundled()?;
            Ok(host)
        });
        match made {
            Err(Error::Store(unwritable @ StoreError::ReadOnly { .. })) => match self.read_if_present()? {
                Some(host) => Ok(host),
                None => Err(unwritable.into()),
            },
            made => Ok(self.keep(made?)),
        }
    }

    /// Tries the notices of whatever this command ended, once each and not for long; with a service up they are its own.
    pub(crate) fn deliver_own(&self) {
        for host in self.opened.borrow_mut().drain(..) {
            deliver_own(&host);
        }
    }

    fn keep(&self, host: Host) -> Arc<Host> {
        let host = Arc::new(host);
        self.opened.borrow_mut().push(Arc::clone(&host));
        host
    }

    fn readable(&self) -> Result<Host, Error> {
        // Opened for writing first: an end that waits is recorded by whoever reads it.
        match Host::open(self.config.clone(), OpenMode::Existing) {
            Err(Error::Store(StoreError::ReadOnly { .. })) => Host::open(self.config.clone(), OpenMode::ReadOnly),
            opened => opened,
        }
    }

    /// Says once that what is shown is not the last word.
    pub(crate) fn warn_that_an_end_waits(&self, reference: &Reference) {
        if self.warned.set(()).is_ok() {
            let said = format!("{reference} has ended, and the store cannot be written: its end waits to be recorded");
            self.output.warn(&said);
        }
    }

    /// The page that text for people goes to.
    pub(crate) fn page(&self) -> Page {
        Page {
            width: width(),
            now: self.config.clock.now(),
            zone: zone(),
        }
    }
}

/// The entity a word means, `@self` included.
pub(crate) fn meant(host: &Host, word: &str) -> Outcome<Entity> {
    Ok(resolve(host, word, own_id().as_deref())?)
}

/// The run that this process says it belongs to.
pub(crate) fn own_id() -> Option<String> {
    variable("RUNWARDEN_ID")?.into_string().ok()
}

/// The operator at this terminal.
pub(crate) fn operator() -> Actor {
    let named = ["USER", "LOGNAME"]
        .into_iter()
        .find_map(|name| variable(name)?.into_string().ok());
    let user = named.unwrap_or_else(|| format!("uid-{}", rustix::process::getuid().as_raw()));
    Actor::new("operator", &user)
}

/// What must never be removed, beside what the host knows: the user's home directory.
pub(crate) fn precious() -> Vec<Protected> {
    let home = variable("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    home.into_iter()
        .map(|home| Protected::place(home, "the user's home directory is in it"))
        .collect()
}

/// A variable of the environment; empty is unset.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

fn home(global: &Global) -> Outcome<PathBuf> {
    let below = |base: OsString, rest: &str| PathBuf::from(base).join(rest);
    let state = || variable("XDG_STATE_HOME").map(|base| below(base, "runwarden"));
    let user = || variable("HOME").map(|base| below(base, ".local/state/runwarden"));
    let given = global
        .home
        .clone()
        .or_else(|| variable("RUNWARDEN_HOME").map(PathBuf::from));
    given.or_else(state).or_else(user).ok_or_else(|| {
        Failure::usage("no home: neither --home, RUNWARDEN_HOME, XDG_STATE_HOME nor HOME is set")
            .hint("export RUNWARDEN_HOME=/var/tmp/runwarden")
    })
}

fn database(global: &Global) -> Outcome<Option<PathBuf>> {
    let given = global.store.clone().or_else(|| variable("RUNWARDEN_STORE"));
    let Some(given) = given else { return Ok(None) };
    let shown = given.to_string_lossy().into_owned();
    let refuse = |message: String| Err(Failure::usage(message).hint("--store sqlite:/path/to/state.db"));
    match given.to_str().map(|text| text.split_once(':')) {
        Some(Some(("sqlite", path))) if !path.is_empty() => {
            let path = std::path::absolute(path)
                .map_err(|error| Failure::usage("the store has no absolute path").cause(error.to_string()))?;
            Ok(Some(path))
        }
        Some(Some(("postgres" | "postgresql", _))) => {
            refuse(format!("`{shown}`: stores on PostgreSQL come with a later release"))
        }
        _ => refuse(format!("`{shown}` is no store: it has the form sqlite:PATH")),
    }
}

/// The reader's zone: what `TZ` names, else the machine's, read straight from its file. The search in jiff lists the whole
/// database of zones first, which costs more than all else that a short command does; it is asked when there is no file.
fn zone() -> TimeZone {
    const ZONES: &str = "/usr/share/zoneinfo";
    let of_file = |path: &Path, name: &str| TimeZone::tzif(name, &std::fs::read(path).ok()?).ok();
    let found = match variable("TZ") {
        Some(told) => told.to_str().and_then(|name| {
            let is_name = !name.starts_with(['/', ':', '.']) && !name.contains("..");
            is_name.then(|| of_file(&Path::new(ZONES).join(name), name))?
        }),
        None => {
            let place = std::fs::read_link("/etc/localtime").ok();
            let name = place
                .as_deref()
                .and_then(|place| place.strip_prefix(ZONES).ok()?.to_str());
            of_file(Path::new("/etc/localtime"), name.unwrap_or("local"))
        }
    };
    found.unwrap_or_else(TimeZone::system)
}

/// Columns of the page: `COLUMNS`, else those of the terminal, else no limit.
pub(crate) fn width() -> Option<u16> {
    let told = variable("COLUMNS")
        .and_then(|value| value.to_str()?.parse().ok())
        .filter(|width| *width > 0);
    let terminal = || {
        let stdout = std::io::stdout();
        if !stdout.is_terminal() {
            return None;
        }
        terminal_size::terminal_size_of(stdout).map(|(width, _)| width.0)
    };
    told.or_else(terminal)
}
