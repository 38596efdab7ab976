//! The files of signify: a comment line, and one line of base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Untrusted;

/// The first line begins so; nothing vouches for what it says.
const COMMENT: &str = "untrusted comment: ";

/// The algorithm, as every file names it.
pub(super) const ALGORITHM: [u8; 2] = *b"Ed";

/// Writes a file.
pub(super) fn written(comment: &str, payload: &[u8]) -> String {
    format!("{COMMENT}{comment}\n{}\n", STANDARD.encode(payload))
}

/// The payload of a file of that many bytes, its algorithm checked.
pub(super) fn read<const LENGTH: usize>(what: &'static str, text: &str) -> Result<[u8; LENGTH], Untrusted> {
    let malformed = |why: &str| Untrusted::Malformed {
        what,
        why: why.to_owned(),
    };
    let mut lines = text.lines();
    let has_comment = lines.next().is_some_and(|line| line.starts_with(COMMENT));
    let (Some(line), true, None) = (lines.next(), has_comment, lines.next()) else {
        return Err(malformed("it has a comment line and one line of base64"));
    };
    payload(line.trim()).ok_or_else(|| malformed("its second line is not what it should be"))
}

/// Bytes in base64, of this length and algorithm.
pub(super) fn payload<const LENGTH: usize>(text: &str) -> Option<[u8; LENGTH]> {
    let bytes: [u8; LENGTH] = STANDARD.decode(text).ok()?.try_into().ok()?;
    bytes.starts_with(&ALGORITHM).then_some(bytes)
}
