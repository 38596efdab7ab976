//! Numbers that look random and are the same for the same seed, which a failing test prints.

use std::time::{Duration, Instant};

/// For how many seconds a test that tries random things goes on, each time with others.
const SECONDS: &str = "RUNWARDEN_FUZZ_SECONDS";

/// The seed to begin with, to see a failure again.
const SEED: &str = "RUNWARDEN_FUZZ_SEED";

/// Seeds for the rounds of a test: so few in the suite, always the same; as many as there is time for when
/// `RUNWARDEN_FUZZ_SECONDS` says so.
pub(super) fn rounds(in_the_suite: u64) -> impl Iterator<Item = u64> {
    let number = |name: &str| Some(std::env::var_os(name)?.to_str()?.parse::<u64>().unwrap());
    let end = number(SECONDS).map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let drawn = || end.map_or(1, |_| getrandom::u64().unwrap() >> 1);
    let first = number(SEED).unwrap_or_else(drawn);
    (0..)
        .take_while(move |round| end.map_or(*round < in_the_suite, |end| Instant::now() < end))
        .map(move |round| first + round)
}

/// A generator of the xorshift family: nothing here needs a better one.
pub(super) struct Random {
    seed: u64,
    state: u64,
}

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        // A state of zero would stay zero.
        let state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Self { seed, state }
    }

    pub(super) fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    /// A number below a bound; 0 when there is none.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound.max(1)).unwrap();
        usize::try_from((self.next() >> 11) % bound).unwrap()
    }

    pub(super) fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[4]
    }
}

impl Drop for Random {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let said = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("the seed is {}\n", self.seed));
            said.unwrap();
        }
    }
}
