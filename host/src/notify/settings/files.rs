//! The two files that settings are in.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::layer::{LayerSettings, read};
use super::problem::Problem;
use crate::model::Layer;
use crate::process::{OwnFile, read_own_file, read_regular};

/// The directory of a project's settings.
pub const PROJECT_DIRECTORY: &str = ".runwarden";

/// The name of a settings file.
pub const SETTINGS_FILE: &str = "settings.toml";

/// The largest settings file that is read.
const FILE_BYTES_MAX: u64 = 256 * 1024;

/// Where the settings of a command are looked for; the host reads no environment itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// The working directory of the command, or of the run that it starts: its project's file is in it or in the nearest directory above it that has one.
    pub working_directory: Option<PathBuf>,
    /// The user's own file.
    pub global: Option<PathBuf>,
}

/// The project's settings. A file that somebody else can have written is told and otherwise as if it were not there: it
/// names programs.
pub fn read_project(working_directory: &Path) -> LayerSettings {
    for directory in working_directory.ancestors().map(|above| above.join(PROJECT_DIRECTORY)) {
        let path = directory.join(SETTINGS_FILE);
        match read_own_file(&directory, SETTINGS_FILE, FILE_BYTES_MAX) {
            Ok(OwnFile::Absent) => {}
            Ok(OwnFile::Text(text)) => return read(Layer::Project, &path, &text),
            Ok(OwnFile::Foreign(why)) => {
                let mut nothing = LayerSettings::empty(Layer::Project);
                let problem = Problem::new("settings_not_trusted", format!("{} is ignored: {why}", path.display()));
                nothing.problems.push(problem);
                nothing.path = Some(path);
                return nothing;
            }
            Err(error) => return unread(Layer::Project, &path, &error),
        }
    }
    LayerSettings::empty(Layer::Project)
}

/// The user's own settings.
pub fn read_global(path: &Path) -> LayerSettings {
    let bytes = match read_regular(path, FILE_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return LayerSettings::empty(Layer::Global);
        }
        Err(error) => return unread(Layer::Global, path, &error),
    };
    match String::from_utf8(bytes) {
        Ok(text) => read(Layer::Global, path, &text),
        Err(_) => LayerSettings::broken(Layer::Global, path, "is not UTF-8"),
    }
}

fn unread(layer: Layer, path: &Path, error: &std::io::Error) -> LayerSettings {
    LayerSettings::broken(layer, path, &format!("cannot be read: {error}"))
}
