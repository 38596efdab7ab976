//! Arguments and paths: bytes that are usually text.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes that JSON shows as a string where they are UTF-8, else as `{"base64": …}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bytes(pub Vec<u8>);

/// The JSON forms.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Form {
    Text(String),
    Encoded { base64: String },
}

impl Bytes {
    /// The bytes as the operating system takes them.
    pub fn as_os_str(&self) -> &OsStr {
        OsStr::from_bytes(&self.0)
    }

    /// The bytes with what is not UTF-8 replaced, for people.
    pub fn lossy(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

impl From<OsString> for Bytes {
    fn from(text: OsString) -> Self {
        Self(text.into_vec())
    }
}

impl From<&OsStr> for Bytes {
    fn from(text: &OsStr) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl From<&str> for Bytes {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let form = match std::str::from_utf8(&self.0) {
            Ok(text) => Form::Text(text.to_owned()),
            Err(_) => Form::Encoded {
                base64: STANDARD.encode(&self.0),
            },
        };
        form.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Form::deserialize(deserializer)? {
            Form::Text(text) => Ok(Self(text.into_bytes())),
            Form::Encoded { base64 } => STANDARD.decode(base64).map(Self).map_err(D::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_a_string_where_possible_and_come_back_the_same() {
        for (bytes, json) in [
            (b"caf\xc3\xa9".to_vec(), "\"café\""),
            (vec![0xff, 0], r#"{"base64":"/wA="}"#),
        ] {
            let text = serde_json::to_string(&Bytes(bytes.clone())).expect("it is plain JSON");
            assert_eq!(text, json);
            assert_eq!(
                serde_json::from_str::<Bytes>(&text).expect("it was just written"),
                Bytes(bytes)
            );
        }
    }
}
