//! A program that a process is about to become: everything exec needs, laid out before there is the process.
//!
//! Between its birth and exec a process that shares its memory with another one, or is a copy of one with threads, may
//! neither allocate nor lock. So all is made beforehand, and [`Executable::execute`] is system calls alone.

use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::io;

use libc::c_char;

/// Where a program without a slash is looked for when its environment has no `PATH`.
const PATH_DEFAULT: &[u8] = b"/bin:/usr/bin";
/// What runs a file that is executable and names nobody who runs it, as `execvp` has it.
const SHELL: &CStr = c"/bin/sh";

/// A program with its arguments and its environment.
pub struct Executable {
    /// The paths to try, in this order.
    candidates: Vec<CString>,
    /// Null-terminated, into `strings`.
    argv: Vec<*const c_char>,
    /// The arguments for [`SHELL`]; the second one is the candidate that it runs.
    script: Vec<Cell<*const c_char>>,
    /// Null-terminated, into `strings`.
    environment: Vec<*const c_char>,
    /// What the pointers point to: it is never changed, and the bytes stay where they are when this moves.
    _strings: [Vec<CString>; 2],
}

impl Executable {
    /// A program, looked up in the `PATH` of its environment unless it has a slash, and its arguments. Variables are
    /// `NAME=value`. None without a program, and when a string has a NUL byte.
    #[must_use]
    pub fn new(argv: &[Vec<u8>], environment: &[Vec<u8>]) -> Option<Self> {
        let candidates = candidates(argv.first()?, environment)?;
        let strings = [c_strings(argv)?, c_strings(environment)?];
        let [argv, environment] = [pointers(&strings[0]), pointers(&strings[1])];
        let script = [SHELL.as_ptr(), SHELL.as_ptr()]
            .into_iter()
            .chain(argv[1..].iter().copied());
        Some(Self {
            candidates,
            script: script.map(Cell::new).collect(),
            argv,
            environment,
            _strings: strings,
        })
    }

    /// Becomes the program, as `execvp` does it, or says with an error number why not. Neither allocates nor locks.
    #[must_use]
    pub fn execute(&self) -> i32 {
        let mut answer = libc::ENOENT;
        for path in &self.candidates {
            match self.become_one(path, &self.argv) {
                libc::ENOEXEC => {
                    self.script[1].set(path.as_ptr());
                    // SAFETY: a cell is laid out as what is in it, and nobody sets one while this is read.
                    let script = unsafe { std::slice::from_raw_parts(self.script.as_ptr().cast(), self.script.len()) };
                    return self.become_one(SHELL, script);
                }
                // Looked for further along the path; if nothing else is found, this is the answer.
                libc::EACCES => answer = libc::EACCES,
                libc::ENOENT | libc::ENOTDIR => {}
                errno => return errno,
            }
        }
        answer
    }

    fn become_one(&self, path: &CStr, argv: &[*const c_char]) -> i32 {
        // SAFETY: both arrays are null-terminated and point to strings that live as long as this does.
        unsafe { libc::execve(path.as_ptr(), argv.as_ptr(), self.environment.as_ptr()) };
        io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
    }
}

/// The strings as C has them; none when one of them has a NUL byte.
#[must_use]
pub fn c_strings(strings: &[Vec<u8>]) -> Option<Vec<CString>> {
    strings
        .iter()
        .map(|bytes| CString::new(bytes.as_slice()).ok())
        .collect()
}

/// A null-terminated array of pointers into `strings`.
#[must_use]
pub fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    let pointers = strings.iter().map(|string| string.as_ptr());
    pointers.chain([std::ptr::null()]).collect()
}

/// The paths to try for a program's name.
fn candidates(name: &[u8], environment: &[Vec<u8>]) -> Option<Vec<CString>> {
    if name.contains(&b'/') || name.is_empty() {
        return Some(vec![CString::new(name).ok()?]);
    }
    let path = environment.iter().find_map(|entry| entry.strip_prefix(b"PATH="));
    let join = |directory: &[u8]| {
        let directory: &[u8] = if directory.is_empty() { b"." } else { directory };
        CString::new([directory, b"/", name].concat()).ok()
    };
    let directories = path.unwrap_or(PATH_DEFAULT).split(|byte| *byte == b':');
    directories.map(join).collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::candidates;

    #[track_caller]
    fn check(name: &str, environment: &[&str], expected: &[&str]) {
        let environment: Vec<Vec<u8>> = environment.iter().map(|entry| entry.as_bytes().to_vec()).collect();
        let found = candidates(name.as_bytes(), &environment).unwrap();
        let found: Vec<&str> = found.iter().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_name_is_looked_for_along_the_path_of_its_environment_and_a_path_is_taken_as_it_is() {
        check("true", &["A=b", "PATH=/a:/b"], &["/a/true", "/b/true"]);
        check("true", &["PATH=/a::"], &["/a/true", "./true", "./true"]);
        check("true", &[], &["/bin/true", "/usr/bin/true"]);
        check("./true", &["PATH=/a"], &["./true"]);
        check("/a/true", &[], &["/a/true"]);
    }

    #[test]
    fn what_no_process_can_be_given_is_no_program() {
        let words = |words: &[&str]| words.iter().map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>();
        assert!(super::Executable::new(&[], &[]).is_none());
        assert!(super::Executable::new(&words(&["a\0b"]), &[]).is_none());
        assert!(super::Executable::new(&words(&["a", "b\0"]), &[]).is_none());
        assert!(super::Executable::new(&words(&["a"]), &words(&["A=\0"])).is_none());
    }
}
