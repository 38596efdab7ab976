//! One table of settings: its keys are read by type, and everything that is wrong with them is kept.

use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value};

use super::problem::{Problem, unknown_key};
use crate::model::{DurationMs, TIMEOUT_MAX, parse_duration};

/// Keys under which people write a secret itself.
const SECRET_KEYS: [&str; 8] = [
    "secret",
    "secrets",
    "signing_secret",
    "secret_key",
    "api_key",
    "key",
    "token",
    "password",
];

/// A table that is being read.
pub(super) struct Table<'a> {
    /// What it is called in messages.
    at: String,
    values: &'a Map<String, Value>,
    /// Where relative paths begin; without one they are refused.
    base: Option<&'a Path>,
    problems: Vec<Problem>,
}

impl<'a> Table<'a> {
    /// Begins to read a table.
    pub(super) fn new(at: impl Into<String>, values: &'a Map<String, Value>, base: Option<&'a Path>) -> Self {
        Self {
            at: at.into(),
            values,
            base,
            problems: Vec::new(),
        }
    }

    /// What is wrong with it.
    pub(super) fn problems(self) -> Vec<Problem> {
        self.problems
    }

    /// Keeps a problem.
    pub(super) fn problem(&mut self, code: impl Into<String>, message: impl Into<String>) {
        self.problems.push(Problem::new(code, message));
    }

    /// Keeps problems that were found elsewhere.
    pub(super) fn add(&mut self, problems: Vec<Problem>) {
        self.problems.extend(problems);
    }

    /// The value of a key; null is absent.
    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.values.get(key).filter(|value| !value.is_null())
    }

    /// Whether one of the keys is there.
    pub(super) fn has(&self, keys: &[&str]) -> bool {
        keys.iter().any(|key| self.get(key).is_some())
    }

    /// Keeps a problem for every key that is not one of these, and for every secret.
    pub(super) fn only(&mut self, known: &[&str], code: &str) {
        for key in self.values.keys().map(String::as_str) {
            if known.contains(&key) {
                continue;
            }
            let problem = if SECRET_KEYS.contains(&key) {
                let message = format!(
                    "`{key}` of {}: a secret is never written here; name where it is: secret_env = \"VARIABLE\" or \
                     secret_file = \"PATH\"",
                    self.at
                );
                Problem::new("secret_is_literal", message)
            } else {
                unknown_key(code, &self.at, key, known)
            };
            self.problems.push(problem);
        }
    }

    /// A string.
    pub(super) fn text(&mut self, key: &str) -> Option<String> {
        match self.get(key)? {
            Value::String(text) => Some(text.clone()),
            _ => {
                self.wrong_type(key, "a_string", "a string");
                None
            }
        }
    }

    /// True or false; false when it is absent.
    pub(super) fn flag(&mut self, key: &str) -> bool {
        match self.get(key) {
            None => false,
            Some(Value::Bool(flag)) => *flag,
            Some(_) => {
                self.wrong_type(key, "a_boolean", "true or false");
                false
            }
        }
    }

    /// A table.
    pub(super) fn table(&mut self, key: &str) -> Option<&'a Map<String, Value>> {
        match self.get(key)? {
            Value::Object(table) => Some(table),
            _ => {
                self.wrong_type(key, "a_table", "a table");
                None
            }
        }
    }

    /// A list of strings.
    pub(super) fn texts(&mut self, key: &str) -> Option<Vec<String>> {
        let texts = self.get(key)?.as_array().and_then(|values| {
            let texts = values.iter().map(|value| value.as_str().map(str::to_owned));
            texts.collect::<Option<Vec<String>>>()
        });
        if texts.is_none() {
            self.wrong_type(key, "a_list_of_strings", "a list of strings");
        }
        texts
    }

    /// A string, or a list of them; empty when it is absent.
    pub(super) fn one_or_more(&mut self, key: &str) -> Vec<String> {
        match self.get(key) {
            None => Vec::new(),
            Some(Value::String(text)) => vec![text.clone()],
            Some(_) => self.texts(key).unwrap_or_default(),
        }
    }

    /// The time that one attempt may take.
    pub(super) fn timeout(&mut self, key: &str) -> Option<DurationMs> {
        let length = self.duration(key)?;
        if length > DurationMs::from_ms(0) && length <= TIMEOUT_MAX {
            return Some(length);
        }
        self.problem(
            format!("{key}_out_of_range"),
            format!("`{key}` of {} is more than nothing and at most 5m", self.at),
        );
        None
    }

    /// A length of time: a number of seconds, or words.
    pub(super) fn duration(&mut self, key: &str) -> Option<DurationMs> {
        let words = match self.get(key)? {
            Value::String(words) => words.clone(),
            Value::Number(seconds) => seconds.to_string(),
            _ => String::new(),
        };
        match parse_duration(&words) {
            Ok(length) => Some(length),
            Err(form) => {
                self.problem(
                    format!("{key}_not_a_duration"),
                    format!("`{key}` of {}: {form}", self.at),
                );
                None
            }
        }
    }

    /// A path, absolute.
    pub(super) fn path(&mut self, key: &str) -> Option<String> {
        let text = self.text(key)?;
        self.placed(key, &text)
    }

    /// A path that was written under a key, made absolute.
    pub(super) fn placed(&mut self, key: &str, text: &str) -> Option<String> {
        match absolute(text, self.base) {
            Ok(path) => Some(path),
            Err(why) => {
                self.problem(format!("{key}_not_a_path"), format!("`{key}` of {}: {why}", self.at));
                None
            }
        }
    }

    /// The name of an environment variable that was written under a key.
    pub(super) fn variable(&mut self, key: &str, name: &str) -> Option<String> {
        let is_name = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
        if !name.is_empty() && name.chars().all(is_name) && !name.starts_with(|sign: char| sign.is_ascii_digit()) {
            return Some(name.to_owned());
        }
        self.problem(
            format!("{key}_not_a_variable"),
            format!(
                "`{key}` of {} names an environment variable: letters, digits and _",
                self.at
            ),
        );
        None
    }

    fn wrong_type(&mut self, key: &str, code: &str, words: &str) {
        self.problem(
            format!("{key}_not_{code}"),
            format!("`{key}` of {} is {words}", self.at),
        );
    }
}

/// A path made absolute, with what leads nowhere taken out.
fn absolute(text: &str, base: Option<&Path>) -> Result<String, &'static str> {
    if text.is_empty() || text.contains('\0') {
        return Err("a path is not empty and holds no NUL");
    }
    if text.starts_with('~') {
        return Err("`~` is not expanded: write the whole path");
    }
    let path = Path::new(text);
    let whole = match base {
        _ if path.is_absolute() => path.to_owned(),
        Some(base) => base.join(path),
        None => return Err("a relative path has nothing here to begin at: write the whole path"),
    };
    let plain: PathBuf = whole.components().filter(|part| *part != Component::CurDir).collect();
    plain
        .into_os_string()
        .into_string()
        .map_err(|_| "the directory it begins at has a name that is not UTF-8: write the whole path")
}
