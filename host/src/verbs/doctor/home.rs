//! Where the home lies, who may read it, and how much room there is.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{Check, size};
use crate::host::Config;
use crate::process::{Exposure, Volume, exposed, usage};

/// With less room than this a run cannot keep its logs, and a commit may fail.
const FREE_BYTES_BAD: u64 = 16 << 20;
/// With less room than this it is time to make some.
const FREE_BYTES_LOW: u64 = 512 << 20;
/// A run makes about ten files.
const FREE_FILES_BAD: u64 = 100;
/// With fewer files to be made than this it is time to make room.
const FREE_FILES_LOW: u64 = 10_000;
/// How many exposed files are named.
const NAMED_MAX: usize = 3;

const ELSEWHERE: &str = "export RUNWARDEN_HOME=/var/tmp/runwarden";

/// What was found of the home.
#[derive(Clone, Debug)]
pub(super) struct Found {
    home: PathBuf,
    is_there: bool,
    volume: Option<Volume>,
    exposed: Vec<Exposure>,
}

impl Found {
    /// Looks at the home, and at the database where it is elsewhere.
    pub(super) fn of(config: &Config) -> Self {
        let home = config.home().to_owned();
        let database = config.database_path();
        let beside = |ending: &str| {
            let mut name: OsString = database.clone().into_os_string();
            name.push(ending);
            PathBuf::from(name)
        };
        let below = ["runs", "cache", "wake"].map(|name| home.join(name));
        let of_store = ["", "-wal", "-shm", "-reserve"].map(beside);
        let runs = std::fs::read_dir(home.join("runs")).into_iter().flatten().flatten();
        let mut paths = vec![home.clone()];
        paths.extend(below.into_iter().chain(of_store));
        paths.extend(runs.map(|entry| entry.path()));
        Self {
            is_there: home.is_dir(),
            volume: Volume::of(&home),
            exposed: exposed(&paths),
            home,
        }
    }
}

/// Judges the home.
pub(super) fn checks(found: &Found) -> Vec<Check> {
    let mut checks = vec![place(found)];
    if found.is_there {
        checks.push(permissions(found));
    }
    checks.extend(found.volume.as_ref().map(space));
    checks
}

fn place(found: &Found) -> Check {
    let home = found.home.display();
    let Some(volume) = &found.volume else {
        return Check::bad("home", format!("{home} cannot be looked at")).hint(ELSEWHERE);
    };
    let on = format!("{home} on {}", volume.kind);
    match (volume.read_only, found.is_there) {
        (true, _) => Check::bad(
            "home",
            format!("{on}, which is mounted read-only: nothing can be started"),
        )
        .hint(ELSEWHERE),
        (false, true) => Check::ok("home", on),
        (false, false) => Check::ok("home", format!("{on}: not there yet, the first run makes it")),
    }
}

fn permissions(found: &Found) -> Check {
    const NAME: &str = "permissions";
    if found.exposed.is_empty() {
        return Check::ok(NAME, "the home is this user's alone (0700, 0600)");
    }
    let named = found.exposed.iter().take(NAMED_MAX).map(|exposure| match exposure {
        Exposure::Owner(path, uid) => format!("{} belongs to uid {uid}", path.display()),
        Exposure::Mode(path, mode) => format!("{} has {mode:04o}", path.display()),
    });
    let mut said = named.collect::<Vec<_>>().join("; ");
    if let Some(more) = found.exposed.len().checked_sub(NAMED_MAX).filter(|more| *more > 0) {
        said.push_str(&format!("; and {more} more"));
    }
    match &found.exposed[0] {
        Exposure::Owner(..) => Check::bad(NAME, said).hint("use the home as the user it belongs to"),
        Exposure::Mode(path, _) => Check::bad(NAME, format!("others may look into it: {said}"))
            .hint(format!("chmod -R go= {}", below_home(found, path).display())),
    }
}

/// The home where the path is below it, else the path.
fn below_home<'a>(found: &'a Found, path: &'a Path) -> &'a Path {
    if path.starts_with(&found.home) {
        &found.home
    } else {
        path
    }
}

fn space(volume: &Volume) -> Check {
    const NAME: &str = "space";
    let files = volume
        .free_files
        .map(|files| format!(", {files} files"))
        .unwrap_or_default();
    let said = format!("{}{files} free", size(volume.free_bytes));
    let fewer = |limit: u64| volume.free_files.is_some_and(|files| files < limit);
    if volume.free_bytes < FREE_BYTES_BAD || fewer(FREE_FILES_BAD) {
        Check::bad(NAME, format!("{said}: starts fail, and output is lost")).hint("make room on that device")
    } else if volume.free_bytes < FREE_BYTES_LOW || fewer(FREE_FILES_LOW) {
        Check::warn(NAME, said).hint("make room on that device")
    } else {
        Check::ok(NAME, said)
    }
}

/// What the home takes on disk.
pub(super) fn disk_use(config: &Config) -> Check {
    let database = config.database_path();
    let name = database.file_name().unwrap_or_default().to_owned();
    let is_of_store = |path: &Path| {
        let file = path.file_name().unwrap_or_default().as_encoded_bytes();
        path.parent() == database.parent() && file.starts_with(name.as_encoded_bytes())
    };
    let directory = database.parent().unwrap_or(Path::new("."));
    let of_store: u64 = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| is_of_store(&entry.path()))
        .filter_map(|entry| Some(entry.metadata().ok()?.len()))
        .sum();
    let runs = config.home().join("runs");
    let all = usage(&runs, |_| true);
    let logs = usage(&runs, |path| path.extension().is_some_and(|ending| ending == "log"));
    let count = std::fs::read_dir(&runs).map_or(0, |entries| entries.flatten().count());
    let cache = usage(&config.cache(), |_| true);
    Check::ok(
        "disk use",
        format!(
            "store {}; run directories {} in {count}, of it logs {}; cache {}",
            size(of_store),
            size(all.bytes),
            size(logs.bytes),
            size(cache.bytes)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::super::CheckResult::{Bad, Ok, Warn};
    use super::*;

    fn volume(free_bytes: u64, free_files: Option<u64>) -> Volume {
        Volume {
            kind: "ext4".to_owned(),
            read_only: false,
            free_bytes,
            free_files,
        }
    }

    fn found(exposed: Vec<Exposure>) -> Found {
        Found {
            home: "/h".into(),
            is_there: true,
            volume: Some(volume(1 << 40, None)),
            exposed,
        }
    }

    #[test]
    fn room_is_judged_by_bytes_and_by_files() {
        for (bytes, files, expected) in [
            (1 << 40, Some(1_000_000), Ok),
            (1 << 40, None, Ok),
            (FREE_BYTES_LOW - 1, None, Warn),
            (1 << 40, Some(FREE_FILES_LOW - 1), Warn),
            (FREE_BYTES_BAD - 1, None, Bad),
            (1 << 40, Some(FREE_FILES_BAD - 1), Bad),
        ] {
            assert_eq!(space(&volume(bytes, files)).result, expected, "{bytes} {files:?}");
        }
    }

    #[test]
    fn what_others_may_read_is_named_with_the_way_to_close_it() {
        assert_eq!(permissions(&found(Vec::new())).result, Ok);
        let check = permissions(&found(vec![Exposure::Mode("/h/state.db".into(), 0o644)]));
        assert_eq!(check.result, Bad);
        assert!(check.message.contains("/h/state.db has 0644"), "{check:?}");
        assert_eq!(check.hint.as_deref(), Some("chmod -R go= /h"));
        let elsewhere = permissions(&found(vec![Exposure::Mode("/other.db".into(), 0o644)]));
        assert_eq!(elsewhere.hint.as_deref(), Some("chmod -R go= /other.db"));
        let many = vec![Exposure::Owner("/h".into(), 7); 5];
        assert!(permissions(&found(many)).message.ends_with("and 2 more"));
    }

    #[test]
    fn a_home_that_cannot_be_written_is_bad_and_one_that_is_not_there_is_not() {
        let mut home = found(Vec::new());
        assert_eq!(place(&home).message, "/h on ext4");
        home.is_there = false;
        assert_eq!(place(&home).result, Ok);
        home.volume.as_mut().expect("it has one").read_only = true;
        assert_eq!(place(&home).result, Bad);
        home.volume = None;
        assert_eq!(place(&home).result, Bad);
    }
}
