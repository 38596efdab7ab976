//! What a logout does to what its user left running: logind's rules, as far as files tell them.
//!
//! A process of a login is in the scope of its session, which logind ends at the logout where `KillUserProcesses` says
//! so; or below the user's own service manager, which ends with the user's last session unless the user lingers. What is
//! in neither is no business of a logout.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// What a logout means for a process of this user that is started here and now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtLogout {
    /// It goes on.
    Survives,
    /// It is killed with the session that it was started in.
    EndsWithSession,
    /// It is killed with the user's service manager, after the last session.
    EndsWithManager,
}

/// What was read of this process's login.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Login {
    /// The control groups of this process, as `/proc/self/cgroup` tells them.
    pub groups: String,
    /// The user's name, if logind knows the user.
    pub user: Option<String>,
    /// Whether the user's service manager stays without a session.
    pub lingers: bool,
    /// The texts of logind's settings, the one that counts most last.
    pub settings: Vec<String>,
}

/// Where the settings are, the directory that counts most last.
const SETTINGS: [&str; 4] = ["usr/lib/systemd", "usr/local/lib/systemd", "run/systemd", "etc/systemd"];

impl Login {
    /// Reads what is known below `root`, which is `/` for this machine. What cannot be read is as if it were not there.
    pub fn read(root: &Path) -> Self {
        let text = |path: &Path| fs::read_to_string(path).ok();
        let uid = rustix::process::getuid().as_raw();
        let known = text(&root.join(format!("run/systemd/users/{uid}")));
        let user = known.and_then(|known| Some(known.lines().find_map(|line| line.strip_prefix("NAME="))?.to_owned()));
        let lingers = user
            .as_ref()
            .is_some_and(|user| root.join("var/lib/systemd/linger").join(user).exists());
        Self {
            groups: text(&root.join("proc/self/cgroup")).unwrap_or_default(),
            user,
            lingers,
            settings: setting_files(root).iter().filter_map(|path| text(path)).collect(),
        }
    }

    /// What a logout means for what this process starts.
    pub fn at_logout(&self) -> AtLogout {
        let Some(user) = &self.user else {
            return AtLogout::Survives;
        };
        match self.groups.lines().find_map(unit) {
            Some(Unit::Session) if Rules::of(&self.settings).kills(user) => AtLogout::EndsWithSession,
            Some(Unit::Manager) if !self.lingers => AtLogout::EndsWithManager,
            Some(Unit::Session | Unit::Manager) | None => AtLogout::Survives,
        }
    }
}

/// The main file that counts, then what is dropped beside it: by name, of one name the one that counts most.
fn setting_files(root: &Path) -> Vec<PathBuf> {
    let directories = SETTINGS.map(|directory| root.join(directory));
    let main = directories.iter().rev().map(|directory| directory.join("logind.conf"));
    let mut dropped = BTreeMap::new();
    for directory in &directories {
        for entry in fs::read_dir(directory.join("logind.conf.d"))
            .into_iter()
            .flatten()
            .flatten()
        {
            if entry.path().extension().is_some_and(|extension| extension == "conf") {
                dropped.insert(entry.file_name(), entry.path());
            }
        }
    }
    main.filter(|path| path.exists())
        .take(1)
        .chain(dropped.into_values())
        .collect()
}

/// The part of a login that a process is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Session,
    Manager,
}

/// The unit that a line of control groups names.
fn unit(line: &str) -> Option<Unit> {
    let path = line.splitn(3, ':').nth(2)?;
    path.split('/').find_map(|part| {
        if part.starts_with("user@") && part.ends_with(".service") {
            Some(Unit::Manager)
        } else if part.starts_with("session-") && part.ends_with(".scope") {
            Some(Unit::Session)
        } else {
            None
        }
    })
}

/// Whose processes are killed at a logout.
struct Rules {
    kills: bool,
    only: Vec<String>,
    except: Vec<String>,
}

impl Rules {
    fn of(settings: &[String]) -> Self {
        let mut rules = Self {
            kills: false,
            only: Vec::new(),
            except: vec!["root".to_owned()],
        };
        // What a distribution was built with is in its own file, as a comment.
        let shipped = settings.iter().flat_map(|text| text.lines());
        let shipped = shipped.filter_map(|line| line.trim().strip_prefix('#'));
        shipped.for_each(|line| rules.set_kills(line));
        for line in settings.iter().flat_map(|text| text.lines()) {
            rules.set_kills(line);
            set_users(&mut rules.only, line, "KillOnlyUsers");
            set_users(&mut rules.except, line, "KillExcludeUsers");
        }
        rules
    }

    fn set_kills(&mut self, line: &str) {
        if let Some(value) = value(line, "KillUserProcesses") {
            self.kills = matches!(
                value.to_ascii_lowercase().as_str(),
                "yes" | "true" | "on" | "1" | "y" | "t"
            );
        }
    }

    fn kills(&self, user: &str) -> bool {
        let is_in = |users: &[String]| users.iter().any(|other| other == user);
        self.kills && !is_in(&self.except) && (self.only.is_empty() || is_in(&self.only))
    }
}

/// Adds the users that a line names; a line that names none empties the list.
fn set_users(users: &mut Vec<String>, line: &str, name: &str) {
    match value(line, name) {
        Some("") => users.clear(),
        Some(value) => users.extend(value.split_whitespace().map(ToOwned::to_owned)),
        None => {}
    }
}

/// The value of a setting, if the line sets it.
fn value<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (found, value) = line.split_once('=')?;
    (found.trim() == name).then_some(value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: &str = "1:name=systemd:/user.slice/user-7.slice/session-3.scope\n0::/\n";
    const MANAGER: &str = "0::/user.slice/user-7.slice/user@7.service/app.slice/vte-spawn-1.scope\n";
    const SERVICE: &str = "0::/system.slice/cron.service\n";

    fn login(groups: &str, settings: &[&str]) -> Login {
        Login {
            groups: groups.to_owned(),
            user: Some("ada".to_owned()),
            lingers: false,
            settings: settings.iter().map(|text| (*text).to_owned()).collect(),
        }
    }

    #[test]
    fn a_session_ends_what_is_in_it_where_the_rules_say_so() {
        let (yes, no) = ("[Login]\nKillUserProcesses=yes\n", "[Login]\n KillUserProcesses = no\n");
        for (settings, expected) in [
            (&[][..], AtLogout::Survives),
            (&[yes], AtLogout::EndsWithSession),
            (&[no], AtLogout::Survives),
            (&[yes, no], AtLogout::Survives),
            (&[no, yes], AtLogout::EndsWithSession),
            (&["#KillUserProcesses=yes"], AtLogout::EndsWithSession),
            (&["#KillUserProcesses=yes", no], AtLogout::Survives),
            (&["#KillUserProcesses=no"], AtLogout::Survives),
            (&[yes, "KillExcludeUsers=bob ada"], AtLogout::Survives),
            (
                &[yes, "KillExcludeUsers=ada", "KillExcludeUsers="],
                AtLogout::EndsWithSession,
            ),
            (&[yes, "KillOnlyUsers=bob"], AtLogout::Survives),
            (&[yes, "KillOnlyUsers=bob ada"], AtLogout::EndsWithSession),
        ] {
            assert_eq!(login(SESSION, settings).at_logout(), expected, "{settings:?}");
            assert_eq!(login(SERVICE, settings).at_logout(), AtLogout::Survives, "{settings:?}");
        }
    }

    #[test]
    fn the_users_manager_ends_what_is_below_it_unless_the_user_lingers() {
        let mut login = login(MANAGER, &["KillUserProcesses=no"]);
        assert_eq!(login.at_logout(), AtLogout::EndsWithManager);
        login.lingers = true;
        assert_eq!(login.at_logout(), AtLogout::Survives);
    }

    #[test]
    fn where_logind_does_not_know_the_user_nobody_logs_out() {
        for groups in [SESSION, MANAGER, SERVICE, ""] {
            let mut login = login(groups, &["KillUserProcesses=yes"]);
            login.user = None;
            assert_eq!(login.at_logout(), AtLogout::Survives, "{groups}");
        }
    }

    #[test]
    fn settings_are_read_in_the_order_in_which_they_count() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("it is below the root")).expect("a directory");
            fs::write(path, text).expect("a file");
        };
        let uid = rustix::process::getuid().as_raw();
        write("usr/lib/systemd/logind.conf", "main of the distribution");
        write("etc/systemd/logind.conf", "main");
        write("usr/lib/systemd/logind.conf.d/20-a.conf", "masked");
        write("etc/systemd/logind.conf.d/20-a.conf", "second");
        write("run/systemd/logind.conf.d/10-b.conf", "first");
        write("run/systemd/logind.conf.d/30-c.txt", "no settings");
        write(
            &format!("run/systemd/users/{uid}"),
            "# private\nNAME=ada\nSTATE=active\n",
        );
        write("var/lib/systemd/linger/ada", "");
        write("proc/self/cgroup", MANAGER);
        let read = Login::read(root.path());
        assert_eq!(read.settings, ["main", "first", "second"]);
        assert_eq!((read.user.as_deref(), read.lingers), (Some("ada"), true));
        assert_eq!(read.groups, MANAGER);
        assert_eq!(Login::read(&root.path().join("nowhere")), Login::default());
    }
}
