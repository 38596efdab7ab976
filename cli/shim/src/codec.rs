//! Length-prefixed little-endian fields.

use std::fmt;

/// Bytes that are not what they should be; says which part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed {}", self.0)
    }
}

impl std::error::Error for Malformed {}

#[derive(Default)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn number(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn bytes(&mut self, value: &[u8]) {
        self.number(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    pub(crate) fn list(&mut self, values: &[Vec<u8>]) {
        self.number(values.len() as u64);
        for value in values {
            self.bytes(value);
        }
    }
}

pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    what: &'static str,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(rest: &'a [u8], what: &'static str) -> Self {
        Self { rest, what }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (head, rest) = self.rest.split_at_checked(length).ok_or(Malformed(self.what))?;
        self.rest = rest;
        Ok(head)
    }

    pub(crate) fn number(&mut self) -> Result<u64, Malformed> {
        let bytes = self.take(8)?.try_into().map_err(|_| Malformed(self.what))?;
        Ok(u64::from_le_bytes(bytes))
    }

    pub(crate) fn small<T: TryFrom<u64>>(&mut self) -> Result<T, Malformed> {
        T::try_from(self.number()?).map_err(|_| Malformed(self.what))
    }

    pub(crate) fn bytes(&mut self) -> Result<Vec<u8>, Malformed> {
        let length = self.small::<usize>()?;
        Ok(self.take(length)?.to_vec())
    }

    pub(crate) fn list(&mut self) -> Result<Vec<Vec<u8>>, Malformed> {
        let count = self.small::<usize>()?;
        let mut values = Vec::new();
        for _ in 0..count {
            values.push(self.bytes()?);
        }
        Ok(values)
    }

    pub(crate) fn end(&self) -> Result<(), Malformed> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(Malformed(self.what))
        }
    }
}
