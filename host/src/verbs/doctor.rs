//! Looks over the machine, the home, the store and what may be running, and says what is not as it should be. Nothing is
//! changed, and a part that cannot be looked at keeps none of the others from it.

mod home;
mod machine;
mod notices;
mod queues;
mod runs;
mod store;

use serde_json::{Value, json};

use crate::host::{Config, Host};
use crate::process::{Abilities, Login};
use crate::store::{OpenMode, StoreError, StoreHealth, examine};

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What, in a word.
    pub name: &'static str,
    /// How it is.
    pub result: CheckResult,
    /// The same in words.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// How a thing that was looked at is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CheckResult {
    /// As it should be.
    Ok,
    /// Less than it could be, or something to know.
    Warn,
    /// Wrong: a promise may not be kept, or something waits for an operator.
    Bad,
}

impl CheckResult {
    /// The word used in output.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Bad => "bad",
        }
    }
}

impl Check {
    fn ok(name: &'static str, message: impl Into<String>) -> Self {
        Self {
            name,
            result: CheckResult::Ok,
            message: message.into(),
            hint: None,
        }
    }

    fn warn(name: &'static str, message: impl Into<String>) -> Self {
        Self {
            result: CheckResult::Warn,
            ..Self::ok(name, message)
        }
    }

    fn bad(name: &'static str, message: impl Into<String>) -> Self {
        Self {
            result: CheckResult::Bad,
            ..Self::ok(name, message)
        }
    }

    #[must_use]
    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The JSON document.
    pub fn json(&self) -> Value {
        json!({
            "name": self.name,
            "result": self.result.word(),
            "message": self.message,
            "hint": self.hint,
        })
    }
}

/// Looks everything over. Blocks for as long as reading the whole database and listing the run directories takes.
pub fn doctor(config: &Config) -> Vec<Check> {
    let mut checks = machine::checks(&Abilities::here(), Login::read(std::path::Path::new("/")).at_logout());
    checks.extend(home::checks(&home::Found::of(config)));
    let database = config.database_path();
    match examine(&database) {
        Ok(health) => {
            checks.extend(store::checks(&health, &store::readers(&database)));
            checks.extend(look_at_runs(config, &health));
        }
        Err(StoreError::Missing { path }) => {
            checks.push(Check::ok(
                "store",
                format!("none yet at {path}: the first run makes it"),
            ));
        }
        Err(error) => checks.push(store::unusable(&error)),
    }
    checks.push(home::disk_use(config));
    checks
}

fn look_at_runs(config: &Config, health: &StoreHealth) -> Vec<Check> {
    if health.format < health.format_known {
        // Only whoever may write reads an older format: it is brought up to date first.
        let said = "not looked at: the store is of an older format, which the next command brings up to date";
        return vec![Check::warn("runs", said).hint("runwarden ls")];
    }
    let looked = Host::open(config.clone(), OpenMode::ReadOnly).and_then(|host| {
        let mut checks = runs::checks(&host)?;
        checks.extend(notices::checks(&host)?);
        checks.extend(queues::checks(&host)?);
        Ok(checks)
    });
    looked.unwrap_or_else(|error| vec![Check::bad("runs", format!("they cannot be looked at: {error}"))])
}

/// A size for people.
fn size(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "for people, one digit behind the point")]
    let of = |unit: u64| bytes as f64 / unit as f64;
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..0x0010_0000 => format!("{:.1} KiB", of(1 << 10)),
        0x0010_0000..0x4000_0000 => format!("{:.1} MiB", of(1 << 20)),
        _ => format!("{:.1} GiB", of(1 << 30)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_a_unit_that_suits_it() {
        let sizes = [0, 1023, 1536, 5 << 20, 3 << 30].map(size);
        assert_eq!(sizes, ["0 B", "1023 B", "1.5 KiB", "5.0 MiB", "3.0 GiB"]);
    }
}
