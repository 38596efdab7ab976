//! What ends only because the host ends it.

use std::hint::black_box;

/// Never ends.
pub(crate) fn run_forever() -> ! {
    let mut count = 0_u64;
    loop {
        count = black_box(count.wrapping_add(1));
    }
}

/// Takes memory until there is none.
pub(crate) fn take_memory() -> ! {
    let mut taken: Vec<Vec<u8>> = Vec::new();
    loop {
        taken.push(black_box(vec![1; 1 << 20]));
    }
}

/// Calls itself without end. The array keeps the compiler from making a loop of it.
pub(crate) fn recurse(depth: u64) -> u64 {
    let frame = black_box([depth; 16]);
    if black_box(depth) == u64::MAX {
        return frame[0];
    }
    recurse(depth + 1).wrapping_add(black_box(frame)[15])
}

/// JSON nested far deeper than anybody writes.
pub(crate) fn deep_json() -> String {
    const DEPTH: usize = 1_000;
    "[".repeat(DEPTH) + &"]".repeat(DEPTH)
}

/// A text larger than any answer may be.
pub(crate) fn enormous_text() -> String {
    "x".repeat(3 << 20)
}
