//! What a word must be to be a name.

use super::limit;

/// A name is lower case with digits and underscores; a policy's name may have dashes too.
pub(super) fn is_name(name: &str, dashes: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || dashes.contains(c);
    !name.is_empty()
        && name.len() <= limit::NAME_CHARS
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(fits)
}

/// Whether a policy or handler may have this name: lower case with digits, underscores and dashes, a letter first.
pub fn is_component_name(name: &str) -> bool {
    is_name(name, "-")
}
