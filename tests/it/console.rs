//! Documents whose sessions are played again: in blocks of `console`, `$ ` begins a command, which goes on after a line that
//! ends in `\` or `&&`, and everything else is an answer. In a block `diff FILE` a line of the file that begins with `-` is
//! replaced by the one below it that begins with `+`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use crate::harness::Home;

/// An answer that says nothing of what is answered, but that the command is obeyed.
const ANYTHING: &str = "…\n";

/// Which lines are looked at.
#[derive(Clone, Copy, PartialEq)]
enum Block<'a> {
    None,
    Session,
    Edit(&'a str),
}

/// The document with the answers that its commands have now.
pub(crate) fn replayed(home: &Home, variables: &[(&str, OsString)], document: &str) -> String {
    let mut told = String::new();
    let mut lines = document.lines().peekable();
    let mut block = Block::None;
    while let Some(line) = lines.next() {
        if let (Block::Session, Some(first)) = (block, line.strip_prefix("$ ")) {
            let mut command = first.to_owned();
            while command.ends_with('\\') || command.ends_with("&&") {
                command = format!("{command}\n{}", lines.next().unwrap_or_default());
            }
            let mut shown = String::new();
            while let Some(answer) = lines.next_if(|line| !line.starts_with("$ ") && *line != "```") {
                shown = format!("{shown}{answer}\n");
            }
            let answer = answer(home, variables, &command, shown == ANYTHING);
            told = format!("{told}$ {command}\n{answer}");
            continue;
        }
        told = format!("{told}{line}\n");
        match (block, line) {
            (Block::None, "```console") => block = Block::Session,
            (Block::None, _) => {
                if let Some(file) = line.strip_prefix("```diff ") {
                    block = Block::Edit(file);
                }
            }
            (_, "```") => block = Block::None,
            (Block::Edit(file), _) => {
                if let (Some(old), Some(new)) = (line.strip_prefix('-'), lines.next_if(|line| line.starts_with('+'))) {
                    edit(home, file, old, &new[1..]);
                    told = format!("{told}{new}\n");
                }
            }
            (Block::Session, _) => {}
        }
    }
    told
}

/// Replaces the first line of a file that is the old one.
fn edit(home: &Home, file: &str, old: &str, new: &str) {
    let path = home.path(file);
    let text = std::fs::read_to_string(&path).expect("a command before made it");
    let mut lines: Vec<&str> = text.lines().collect();
    let place = lines.iter().position(|line| *line == old);
    lines[place.unwrap_or_else(|| panic!("no line of {file} is `{old}`"))] = new;
    std::fs::write(path, lines.join("\n") + "\n").expect("a file of ours");
}

/// What a command says on both streams, without what is another one each time.
fn answer(home: &Home, variables: &[(&str, OsString)], command: &str, is_anything: bool) -> String {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_runwarden"));
    let directory = program.parent().expect("it is in a directory").display();
    let mut path = OsString::from(format!("{directory}:"));
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let output = Command::new("sh")
        .args(["-c", &format!("exec 2>&1\n{command}")])
        .env_clear()
        .env("PATH", path)
        .env("RUNWARDEN_HOME", home.home())
        .env("HOME", home.path("."))
        .env("USER", "you")
        .env("LC_ALL", "C.UTF-8")
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .current_dir(home.path("."))
        .output()
        .expect("a shell");
    let text = String::from_utf8(output.stdout).expect("text");
    if is_anything {
        assert!(output.status.success(), "`{command}`: {text}");
        return ANYTHING.to_owned();
    }
    let line = |line: &str| {
        format!(
            "{}\n",
            masked(&line.replace(&home.path("").display().to_string(), "~/"))
        )
    };
    text.lines().map(line).collect()
}

/// Digests have no meaning to a reader, and are others with another compiler; times of day are others each time.
fn masked(line: &str) -> String {
    let line = &untimed(line);
    let is_digest = |word: &str| word.len() >= 12 && word.chars().all(|c| c.is_ascii_hexdigit());
    let parts = line.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
    let mask = |part: &str| {
        let word = part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        if is_digest(word) {
            part.replace(word, "…")
        } else {
            part.to_owned()
        }
    };
    parts.map(mask).collect()
}

/// A line with `…` in place of times such as 07:30:00.
fn untimed(line: &str) -> String {
    let is_time = |word: &str| {
        let parts: Vec<&str> = word.split(':').collect();
        let two_digits = |part: &&str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        parts.len() == 3 && parts.iter().all(two_digits)
    };
    let parts = line.split_inclusive([' ', ',']);
    let mask = |part: &str| {
        let word = part.trim_end_matches([' ', ',']);
        if is_time(word) {
            part.replace(word, "…")
        } else {
            part.to_owned()
        }
    };
    parts.map(mask).collect()
}
