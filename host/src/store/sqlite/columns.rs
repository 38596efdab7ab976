//! Between columns and the model's types.

use std::fmt;

use rusqlite::types::{FromSql, Type};
use rusqlite::{Error, Row};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::model::Timestamp;

/// Takes the columns of a row one after the other, in the order of the statement.
pub(super) struct Columns<'row, 'statement> {
    row: &'row Row<'statement>,
    table: &'static str,
    at: usize,
}

/// A stored value that is not what its column holds: table, row and column by name, what is wrong.
#[derive(Debug)]
struct Damage(String);

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Damage {}

impl<'row, 'statement> Columns<'row, 'statement> {
    /// The columns of a row of `table`; the first is the row's number, which errors name.
    pub(super) const fn of(row: &'row Row<'statement>, table: &'static str) -> Self {
        Self { row, table, at: 0 }
    }

    /// The next column.
    pub(super) fn take<T: FromSql>(&mut self) -> rusqlite::Result<T> {
        let at = self.next();
        self.row.get(at).map_err(|error| self.damage(at, &error))
    }

    /// The next column, a moment.
    pub(super) fn moment(&mut self) -> rusqlite::Result<Timestamp> {
        Ok(Timestamp::from_ms(self.take()?))
    }

    /// The next column, a moment or nothing.
    pub(super) fn maybe_moment(&mut self) -> rusqlite::Result<Option<Timestamp>> {
        Ok(self.take::<Option<i64>>()?.map(Timestamp::from_ms))
    }

    /// The next column, JSON; NULL is the type's own "empty".
    pub(super) fn json<T: DeserializeOwned + Default>(&mut self) -> rusqlite::Result<T> {
        let at = self.next();
        let text: Option<&str> = self
            .row
            .get_ref(at)?
            .as_str_or_null()
            .map_err(|error| self.damage(at, &error))?;
        match text {
            None => Ok(T::default()),
            Some(text) => serde_json::from_str(text).map_err(|error| self.damage(at, &error)),
        }
    }

    /// The next column, JSON that is always there.
    pub(super) fn given_json<T: DeserializeOwned>(&mut self) -> rusqlite::Result<T> {
        let at = self.next();
        let text: String = self.row.get(at).map_err(|error| self.damage(at, &error))?;
        serde_json::from_str(&text).map_err(|error| self.damage(at, &error))
    }

    /// The next column, one of some words.
    pub(super) fn word<T>(&mut self, value_of: fn(&str) -> Option<T>) -> rusqlite::Result<T> {
        let at = self.next();
        let text: String = self.row.get(at).map_err(|error| self.damage(at, &error))?;
        value_of(&text).ok_or_else(|| self.damage(at, &format!("`{text}` is unknown")))
    }

    fn next(&mut self) -> usize {
        self.at += 1;
        self.at - 1
    }

    fn damage(&self, at: usize, what: &dyn fmt::Display) -> Error {
        let number = self
            .row
            .get::<_, i64>(0)
            .map_or_else(|_| "?".to_owned(), |number| number.to_string());
        let column = self.row.as_ref().column_name(at).unwrap_or("?").to_owned();
        let damage = Damage(format!("table {}, row {number}, column {column}: {what}", self.table));
        Error::FromSqlConversionFailure(at, Type::Text, Box::new(damage))
    }
}

/// JSON text for a column.
pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("the model's values have text keys and finite numbers")
}
