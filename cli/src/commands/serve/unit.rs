//! `serve --install`: the unit of the user's systemd.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::Args;
use crate::context::{Context, variable};
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;
use crate::output::{Page, Report, Style, Text};

const NAME: &str = "runwarden.service";

/// What was done.
pub(super) struct Installed {
    path: PathBuf,
    /// Whether the file was not there, or was another.
    is_new: bool,
    /// Why the unit could not be enabled and started.
    not_enabled: Option<String>,
}

/// Writes the unit, enables and starts it. Doing it again changes nothing.
pub(super) fn execute(context: &Context, args: &Args) -> Outcome<Installed> {
    let config = context.config();
    let mut words = vec![
        config.program.clone().into_os_string(),
        "--home".into(),
        config.home.into(),
    ];
    if let Some(database) = config.database {
        let mut store = std::ffi::OsString::from("sqlite:");
        store.push(database);
        words.extend(["--store".into(), store]);
    }
    words.extend(["serve".into(), "--listen".into(), args.listen.to_string().into()]);
    if let Some(slots) = args.slots {
        words.extend(["--slots".into(), slots.to_string().into()]);
    }
    for queue in &args.queues {
        words.extend(["--queue".into(), queue.into()]);
    }
    if let Some(grace) = args.lease_grace {
        words.extend(["--lease-grace".into(), format!("{}ms", grace.as_ms()).into()]);
    }
    let words: Option<Vec<String>> = words.iter().map(|word| quoted(word.as_bytes())).collect();
    let words = words.ok_or_else(|| {
        Failure::usage("a unit cannot name a path with line breaks or bytes that are no UTF-8")
            .hint("choose another home: export RUNWARDEN_HOME=/var/tmp/runwarden")
    })?;
    let path = directory()?.join(NAME);
    let is_new = write(&path, &unit(&words.join(" ")))?;
    let mut steps: Vec<&[&str]> = vec![&["daemon-reload"], &["enable", "--now", NAME]];
    if is_new {
        // One that is up already goes on as it was started.
        steps.push(&["restart", NAME]);
    }
    let not_enabled = steps.into_iter().find_map(|step| systemctl(step).err());
    Ok(Installed {
        path,
        is_new,
        not_enabled,
    })
}

/// The unit. The shims that the service started for orphaned runs are among its processes: they stay when it stops, and
/// when one of them runs out of memory it goes on.
fn unit(command: &str) -> String {
    format!(
        "# Written by `runwarden serve --install`, which replaces it; `systemctl --user edit runwarden` adds to it.\n\
         [Unit]\n\
         Description=Runwarden: delivers notices, repairs what died half-way\n\
         \n\
         [Service]\n\
         Type=exec\n\
         ExecStart={command}\n\
         Restart=on-failure\n\
         RestartSec=2\n\
         RestartPreventExitStatus=4 64\n\
         KillMode=process\n\
         OOMPolicy=continue\n\
         \n\
         [Install]\n\
         WantedBy=default.target\n"
    )
}

/// A word as a unit's command line takes it literally. None for what cannot be written there.
fn quoted(word: &[u8]) -> Option<String> {
    let word = std::str::from_utf8(word).ok()?;
    if word.chars().any(char::is_control) {
        return None;
    }
    let escaped = word
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('%', "%%")
        .replace('$', "$$");
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.:=[]".contains(&byte);
    Some(match word.bytes().all(is_plain) && !word.is_empty() {
        true => escaped,
        false => format!("\"{escaped}\""),
    })
}

fn directory() -> Outcome<PathBuf> {
    let absolute = |path: PathBuf| path.is_absolute().then_some(path);
    let configured = variable("XDG_CONFIG_HOME").map(PathBuf::from).and_then(absolute);
    let of_user = || {
        variable("HOME")
            .map(|home| PathBuf::from(home).join(".config"))
            .and_then(absolute)
    };
    let base = configured.or_else(of_user).ok_or_else(|| {
        Failure::usage("neither XDG_CONFIG_HOME nor HOME says where units are").hint("export HOME=/home/you")
    })?;
    Ok(base.join("systemd/user"))
}

/// Writes the file whole, unless it is there as it should be; whether it was written.
fn write(path: &Path, text: &str) -> Outcome<bool> {
    if fs::read_to_string(path).is_ok_and(|found| found == text) {
        return Ok(false);
    }
    let part = path.with_extension("service.part");
    let written = fs::create_dir_all(path.parent().unwrap_or(path))
        .and_then(|()| fs::write(&part, text))
        .and_then(|()| fs::rename(&part, path));
    written.map_err(|error| Failure::file("write", path, &error))?;
    Ok(true)
}

/// Asks the user's systemd; why it did not.
fn systemctl(arguments: &[&str]) -> Result<(), String> {
    let asked = Command::new("systemctl")
        .arg("--user")
        .args(arguments)
        .stdin(Stdio::null())
        .output();
    match asked {
        Ok(answer) if answer.status.success() => Ok(()),
        Ok(answer) => {
            let said = String::from_utf8_lossy(&answer.stderr);
            let said = said.lines().next().unwrap_or_default().trim().to_owned();
            Err(format!("`systemctl --user {}`: {said}", arguments.join(" ")))
        }
        Err(error) => Err(format!("systemctl cannot be started: {error}")),
    }
}

impl Report for Installed {
    fn json(&self) -> Value {
        json!({
            "unit": self.path,
            "written": self.is_new,
            "enabled": self.not_enabled.is_none(),
            "problem": self.not_enabled,
        })
    }

    fn text(&self, page: &Page) -> Text {
        let path = self.path.display();
        let mut text = Text::own(match self.is_new {
            true => format!("{path} is written."),
            false => format!("{path} is as it should be."),
        });
        match &self.not_enabled {
            None => {
                text.line(Text::of(
                    "It is enabled and up; `systemctl --user status runwarden` shows it.",
                ));
                text.line(Text::of(
                    "`loginctl enable-linger` keeps it up while you are not logged in.",
                ));
            }
            Some(why) => {
                let lead = Text::styled(Style::Bad, "It is not enabled: ");
                text.line(Text::hanging(lead, 2, why.clone(), page));
                text.line(
                    Text::styled(Style::Strong, "hint:")
                        .and(" systemctl --user daemon-reload && systemctl --user enable --now runwarden"),
                );
            }
        }
        text
    }

    fn exit(&self) -> Exit {
        if self.not_enabled.is_none() {
            Exit::DONE
        } else {
            Exit::NO
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_means_itself_in_a_unit() {
        for (word, written) in [
            ("/usr/bin/runwarden", "/usr/bin/runwarden"),
            ("/home/a b/x", "\"/home/a b/x\""),
            ("/a%h/$HOME", "\"/a%%h/$$HOME\""),
            ("a\"b\\c;d", "\"a\\\"b\\\\c;d\""),
            ("", "\"\""),
            ("[::1]:7117", "[::1]:7117"),
        ] {
            assert_eq!(quoted(word.as_bytes()).as_deref(), Some(written));
        }
        assert_eq!(quoted(b"a\nb"), None);
        assert_eq!(quoted(b"\xff"), None);
    }

    #[test]
    fn stopping_the_service_stops_no_run() {
        let unit = unit("runwarden serve");
        for line in ["KillMode=process", "Restart=on-failure", "OOMPolicy=continue"] {
            assert!(unit.lines().any(|found| found == line), "{unit}");
        }
    }
}
