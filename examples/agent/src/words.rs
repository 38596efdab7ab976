//! What a program's last words say of why it gave up.

/// What they say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Last {
    /// Its provider wants it to slow down, for so long if it says so.
    RateLimited { wait_ms: Option<i64> },
    /// No more fits into its context.
    ContextFull,
}

/// More than a day is no rest but a mistake, such as a date read as a number.
const WAIT_SECONDS_MAX: i64 = 86_400;

/// What the last line that says either says.
pub(crate) fn last(output: &str) -> Option<Last> {
    output.lines().rev().find_map(line)
}

fn line(line: &str) -> Option<Last> {
    let line = line.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| line.contains(word));
    if says(&["rate limit", "rate-limit", "rate_limit", "too many requests"]) {
        let wait_ms = seconds(&line).map(|seconds| seconds * 1_000);
        return Some(Last::RateLimited { wait_ms });
    }
    let is_full = line.contains("context") && says(&["full", "exceed", "too long", "length limit"]);
    is_full.then_some(Last::ContextFull)
}

/// The number after the word `retry` or `again`, in seconds; none where it counts in something else.
fn seconds(line: &str) -> Option<i64> {
    let after = ["retry", "again"].iter().find_map(|word| {
        let place = line.find(word)?;
        Some(&line[place + word.len()..])
    })?;
    let digits = after.trim_start_matches(|c: char| !c.is_ascii_digit());
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let (number, unit) = digits.split_at(end);
    let unit = unit.trim_start();
    let number: i64 = number.parse().ok()?;
    let seconds = match unit.chars().next() {
        Some('m') if unit.starts_with("ms") => number.checked_add(999)? / 1_000,
        Some('m') => number.checked_mul(60)?,
        Some('h') => number.checked_mul(3_600)?,
        _ => number,
    };
    (0..=WAIT_SECONDS_MAX).contains(&seconds).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::{Last, last};

    fn check(output: &str, expected: Option<Last>) {
        assert_eq!(last(output), expected, "{output}");
    }

    #[test]
    fn a_rate_limit_is_told_with_the_rest_it_wants() {
        let limited = |seconds: Option<i64>| {
            Some(Last::RateLimited {
                wait_ms: seconds.map(|seconds| seconds * 1_000),
            })
        };
        check("working\nError: rate limited, retry in 30s\n", limited(Some(30)));
        check("429 Too Many Requests (Retry-After: 120)", limited(Some(120)));
        check("Rate limit reached. Try again in 2 minutes.", limited(Some(120)));
        check("rate_limit_error: please retry after 1500 ms", limited(Some(2)));
        check("Rate limit reached.", limited(None));
        check("rate limit; retry at 1767225600", limited(None));
        check("rate limit; retry in 99999999999999999999", limited(None));
    }

    #[test]
    fn a_full_context_is_told_whatever_it_is_called() {
        check("error: context window is full", Some(Last::ContextFull));
        check(
            "maximum context length exceeded (210000 tokens)",
            Some(Last::ContextFull),
        );
    }

    #[test]
    fn the_last_word_counts_and_other_words_say_nothing() {
        let limited = Some(Last::RateLimited { wait_ms: None });
        check("context full\nrate limit", limited);
        check("rate limit\ncontext full\nbye", Some(Last::ContextFull));
        check("segmentation fault", None);
        check("", None);
    }
}
