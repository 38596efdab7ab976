//! Signals by name or number.

use runwarden_host::model::SIGNALS;

/// Reads a signal: `TERM`, `SIGTERM`, `sigterm` or `15`.
///
/// # Errors
/// Says why the word is none.
pub(crate) fn signal(word: &str) -> Result<i32, String> {
    const NUMBER_MAX: i32 = 64;
    if let Ok(number) = word.parse::<i32>() {
        return if (1..=NUMBER_MAX).contains(&number) {
            Ok(number)
        } else {
            Err("no signal has that number".to_owned())
        };
    }
    let upper = word.to_ascii_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    let found = SIGNALS.iter().find(|(known, _)| *known == name);
    found
        .map(|(_, number)| *number)
        .ok_or_else(|| "write a signal's name or number, such as TERM or 15".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_read_by_name_or_number() {
        for word in ["TERM", "SIGTERM", "sigterm", "15"] {
            assert_eq!(signal(word), Ok(15), "{word}");
        }
        for bad in ["", "0", "65", "-9", "SIG", "NOPE"] {
            assert!(signal(bad).is_err(), "{bad}");
        }
    }
}
