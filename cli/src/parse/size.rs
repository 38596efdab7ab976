//! Sizes: `64MiB`, `64M`, `1.5GiB`, `200MB`, a bare number is bytes.

/// Units and what they count: a bare letter is the power of two that people mean by it.
const UNITS: [(&str, u64); 13] = [
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kib", 1 << 10),
    ("kb", 1_000),
    ("m", 1 << 20),
    ("mib", 1 << 20),
    ("mb", 1_000_000),
    ("g", 1 << 30),
    ("gib", 1 << 30),
    ("gb", 1_000_000_000),
    ("tib", 1 << 40),
    ("t", 1 << 40),
];

/// Reads a size in bytes.
///
/// # Errors
/// Says why the word is none.
pub(crate) fn size(word: &str) -> Result<u64, String> {
    const FORM: &str = "write 64MiB, 200MB, 1.5G, or a number of bytes";
    let digits = word.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let (number, unit) = word.split_at(digits.unwrap_or(word.len()));
    let unit = unit.trim_start().to_ascii_lowercase();
    let (_, bytes) = UNITS.iter().find(|row| row.0 == unit).ok_or(FORM)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || fraction.is_empty() || fraction.len() > 9 {
        return Err(FORM.to_owned());
    }
    let parse = |text: &str| text.parse::<u64>().map_err(|_| FORM.to_owned());
    let scale = 10_u128.pow(u32::try_from(fraction.len()).expect("nine digits at most"));
    let parts = u128::from(parse(whole)?) * scale + u128::from(parse(fraction)?);
    u64::try_from(parts * u128::from(*bytes) / scale).map_err(|_| "too large a size".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_a_unit_or_is_bytes() {
        let sizes = [
            ("0", 0),
            ("7", 7),
            ("1k", 1_024),
            ("64MiB", 64 << 20),
            ("64 m", 64 << 20),
            ("200MB", 200_000_000),
            ("1.5GiB", 3 << 29),
            ("2T", 2 << 40),
        ];
        for (word, bytes) in sizes {
            assert_eq!(size(word), Ok(bytes), "{word}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for word in [
            "",
            "-1",
            "M",
            "1.",
            ".5",
            "1x",
            "1 M B",
            "1.2.3",
            "99999999999999999999",
            "18446744073709551615k",
        ] {
            assert!(size(word).is_err(), "{word:?}");
        }
    }
}
