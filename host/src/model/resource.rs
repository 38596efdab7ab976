//! What belongs to a run outside its run directory, and what must never be taken for it (SEMANTICS 9).

use std::path::{Path, PathBuf};

use super::{Reference, Timestamp};

/// A directory that a run registered as its own: removed with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The store's number for it; zero before it is stored.
    pub id: i64,
    /// Whose it is.
    pub owner: Reference,
    /// Where it is, an absolute path.
    pub directory: Vec<u8>,
    /// When it was registered.
    pub created_at: Timestamp,
}

/// A place that no removal may touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protected {
    /// Where it is.
    pub path: PathBuf,
    /// What is there, in words: `run/7kq2 works in it`.
    pub why: String,
    /// How much of it is protected.
    pub extent: Extent,
}

/// How much of a protected place is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The place, and so whatever contains it.
    Place,
    /// Also everything inside.
    Inside,
}

impl Protected {
    /// A place, whatever contains it included.
    pub fn place(path: impl Into<PathBuf>, why: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            why: why.into(),
            extent: Extent::Place,
        }
    }

    /// A place with everything inside.
    pub fn inside(path: impl Into<PathBuf>, why: impl Into<String>) -> Self {
        Self {
            extent: Extent::Inside,
            ..Self::place(path, why)
        }
    }

    fn forbids(&self, directory: &Path) -> bool {
        let within = self.extent == Extent::Inside && directory.starts_with(&self.path);
        within || self.path.starts_with(directory)
    }
}

/// Why a directory must not be removed; none when nothing speaks against it. Both sides are absolute and without links,
/// as far as whoever asks could find out.
pub fn refusal<'a>(directory: &Path, protected: &'a [Protected]) -> Option<&'a str> {
    let is_plain = directory
        .components()
        .all(|part| matches!(part, std::path::Component::RootDir | std::path::Component::Normal(_)));
    if !directory.is_absolute() || !is_plain {
        return Some("its path is not absolute and plain");
    }
    if directory.parent().is_none() {
        return Some("it is the root of the file system");
    }
    protected
        .iter()
        .find(|place| place.forbids(directory))
        .map(|place| place.why.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(directory: &str, expected: Option<&str>) {
        let protected = [
            Protected::place("/home/ada", "it is a home"),
            Protected::place("/work/b/src", "run/b works in it"),
            Protected::inside("/state/runwarden", "runwarden lives there"),
        ];
        assert_eq!(refusal(Path::new(directory), &protected), expected, "{directory}");
    }

    #[test]
    fn a_directory_is_refused_when_something_live_is_it_or_in_it() {
        check("/work/b/src", Some("run/b works in it"));
        check("/work/b", Some("run/b works in it"));
        check("/work", Some("run/b works in it"));
        check("/home", Some("it is a home"));
        check("/home/ada", Some("it is a home"));
        check("/", Some("it is the root of the file system"));
        check("/state", Some("runwarden lives there"));
        check("/state/runwarden/runs/x", Some("runwarden lives there"));
    }

    #[test]
    fn what_only_looks_alike_or_lies_beside_is_not_refused() {
        check("/work/a", None);
        check("/work/b/src2", None);
        check("/work/b/src/inner", None);
        check("/home/ada/tree", None);
    }

    #[test]
    fn a_path_that_may_lead_elsewhere_is_refused() {
        check("work/a", Some("its path is not absolute and plain"));
        check("/work/a/../b", Some("its path is not absolute and plain"));
        check("", Some("its path is not absolute and plain"));
    }
}
