//! Signals by number and name.

/// Signals that have a name, with their numbers on Linux.
pub const SIGNALS: [(&str, i32); 31] = [
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ILL", 4),
    ("TRAP", 5),
    ("ABRT", 6),
    ("BUS", 7),
    ("FPE", 8),
    ("KILL", 9),
    ("USR1", 10),
    ("SEGV", 11),
    ("USR2", 12),
    ("PIPE", 13),
    ("ALRM", 14),
    ("TERM", 15),
    ("STKFLT", 16),
    ("CHLD", 17),
    ("CONT", 18),
    ("STOP", 19),
    ("TSTP", 20),
    ("TTIN", 21),
    ("TTOU", 22),
    ("URG", 23),
    ("XCPU", 24),
    ("XFSZ", 25),
    ("VTALRM", 26),
    ("PROF", 27),
    ("WINCH", 28),
    ("IO", 29),
    ("PWR", 30),
    ("SYS", 31),
];

/// The name of a signal, such as `SIGTERM`; its number where it has none.
pub fn signal_name(number: i64) -> String {
    let found = SIGNALS.iter().find(|(_, known)| i64::from(*known) == number);
    found.map_or_else(|| format!("signal {number}"), |(name, _)| format!("SIG{name}"))
}

/// Reads a signal: `TERM`, `SIGTERM`, `sigterm` or `15`.
///
/// # Errors
/// Says why the word is none.
pub fn parse_signal(word: &str) -> Result<i32, String> {
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
            assert_eq!(parse_signal(word), Ok(15), "{word}");
        }
        for bad in ["", "0", "65", "-9", "SIG", "NOPE"] {
            assert!(parse_signal(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_signal_has_a_name_or_a_number() {
        assert_eq!(signal_name(9), "SIGKILL");
        assert_eq!(signal_name(40), "signal 40");
    }
}
