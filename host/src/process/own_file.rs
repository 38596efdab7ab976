//! Files that say what to start: read only when nobody else can have written them.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};

/// How reading came out.
#[derive(Debug)]
pub enum OwnFile {
    /// It is not there.
    Absent,
    /// Somebody else can have written it: why.
    Foreign(String),
    /// What is in it.
    Text(String),
}

/// Reads `name` in a directory, if both belong to this user and nobody else may write them. Neither may be a symbolic
/// link: whoever may make one chooses what is read. At most `limit_bytes` are read.
///
/// # Errors
/// It is there and cannot be read, is no file, no UTF-8, or too large.
pub fn read_own_file(directory: &Path, name: &str, limit_bytes: u64) -> io::Result<OwnFile> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let opened = match openat(CWD, directory, flags | OFlags::DIRECTORY, Mode::empty()) {
        Ok(opened) => File::from(opened),
        Err(rustix::io::Errno::NOENT) => return Ok(OwnFile::Absent),
        Err(rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP) => return Ok(linked(directory)),
        Err(error) => return Err(error.into()),
    };
    // A pipe must not make us wait for its writer.
    let file = match openat(&opened, name, flags | OFlags::NONBLOCK, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::NOENT) => return Ok(OwnFile::Absent),
        Err(rustix::io::Errno::LOOP) => return Ok(linked(&directory.join(name))),
        Err(error) => return Err(error.into()),
    };
    for (place, held) in [(directory.to_owned(), &opened), (directory.join(name), &file)] {
        if let Some(why) = foreign(&place, held)? {
            return Ok(OwnFile::Foreign(why));
        }
    }
    text(file, limit_bytes).map(OwnFile::Text)
}

/// A place where a symbolic link leads elsewhere; a plain file where a directory should be leads nowhere.
fn linked(place: &Path) -> OwnFile {
    match place.symlink_metadata() {
        Ok(found) if found.file_type().is_symlink() => {
            OwnFile::Foreign(format!("{} is a symbolic link", place.display()))
        }
        _ => OwnFile::Absent,
    }
}

/// Who else can have written it.
fn foreign(place: &Path, file: &File) -> io::Result<Option<String>> {
    const OTHERS_WRITE: u32 = 0o022;
    let found = file.metadata()?;
    let place = place.display();
    Ok(if found.uid() != rustix::process::geteuid().as_raw() {
        Some(format!("{place} belongs to user {}", found.uid()))
    } else if found.mode() & OTHERS_WRITE != 0 {
        Some(format!("{place} is writable by others; `chmod go-w {place}` ends that"))
    } else {
        None
    })
}

fn text(file: File, limit_bytes: u64) -> io::Result<String> {
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is no file"));
    }
    let mut bytes = Vec::new();
    file.take(limit_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit_bytes {
        let message = format!("it is larger than {limit_bytes} bytes");
        return Err(io::Error::new(ErrorKind::InvalidData, message));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not UTF-8"))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot prepare its files fails")]

    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    /// A directory of this user with one file in it.
    fn prepared() -> (tempfile::TempDir, std::path::PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("own");
        fs::create_dir(&directory).unwrap();
        fs::set_permissions(&directory, Permissions::from_mode(0o755)).unwrap();
        fs::write(directory.join("file"), "text").unwrap();
        fs::set_permissions(directory.join("file"), Permissions::from_mode(0o644)).unwrap();
        (place, directory)
    }

    fn word(read: io::Result<OwnFile>) -> String {
        match read {
            Ok(OwnFile::Absent) => "absent".to_owned(),
            Ok(OwnFile::Foreign(why)) => why.split(';').next().unwrap_or_default().to_owned(),
            Ok(OwnFile::Text(text)) => text,
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_file_is_read_that_only_its_owner_can_have_written() {
        let (_place, directory) = prepared();
        assert_eq!(word(read_own_file(&directory, "file", 4)), "text");
        assert_eq!(word(read_own_file(&directory, "other", 4)), "absent");
        assert_eq!(word(read_own_file(&directory.join("none"), "file", 4)), "absent");
        assert_eq!(word(read_own_file(&directory.join("file"), "file", 4)), "absent");
        assert_eq!(word(read_own_file(&directory, "file", 3)), "it is larger than 3 bytes");
    }

    #[test]
    fn what_others_can_write_is_not_read() {
        for (name, mode) in [("file", 0o664), ("file", 0o646), ("", 0o775), ("", 0o777)] {
            let (_place, directory) = prepared();
            fs::set_permissions(directory.join(name), Permissions::from_mode(mode)).unwrap();
            let said = word(read_own_file(&directory, "file", 4));
            assert!(said.ends_with("is writable by others"), "{name} {mode:o}: {said}");
        }
    }

    #[test]
    fn a_link_and_a_pipe_are_not_followed() {
        let (place, directory) = prepared();
        symlink(directory.join("file"), directory.join("link")).unwrap();
        symlink(&directory, place.path().join("linked")).unwrap();
        for (directory, name) in [(directory.clone(), "link"), (place.path().join("linked"), "file")] {
            let said = word(read_own_file(&directory, name, 4));
            assert!(said.ends_with("is a symbolic link"), "{said}");
        }
        let pipe = directory.join("pipe");
        rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        assert_eq!(word(read_own_file(&directory, "pipe", 4)), "it is no file");
    }
}
