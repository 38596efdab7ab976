//! Components that were damaged on their way: every cut is refused, and whatever is changed is judged for what it is.

use std::fs;
use std::path::Path;
use std::time::Duration;

use runwarden_test_guests::{Stub, corpus, sections};

use super::random::{Random, rounds};
use crate::model::sha256_hex;
use crate::policy::{InstallError, Limits, compile_here, inspect, prepare};

/// Less than an honest component needs: what damage makes of one is to end soon.
const TIGHT: Limits = Limits {
    fuel: 1_000_000,
    wall: Duration::from_secs(10),
    memory_bytes: 2 << 20,
    ..Limits::DEFAULT
};

fn golden(name: &str) -> Vec<u8> {
    fs::read(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../tests/fixtures/golden/0.1.0")
            .join(name),
    )
    .unwrap()
}

#[test]
fn a_component_cut_at_any_border_of_its_sections_or_beside_it_is_refused() {
    for bytes in [
        Stub::policy().component(),
        golden("every_part.wasm"),
        golden("handler.wasm"),
    ] {
        let borders = sections(&bytes);
        assert_eq!(borders.last(), Some(&bytes.len()));
        for border in &borders {
            for cut in [border - 1, *border, border + 1] {
                let found = inspect(&bytes[..cut.min(bytes.len())], Limits::DEFAULT);
                // What ends with a section may be whole, and is another file with what it exports until there.
                let is_refused = matches!(found, Err(InstallError::Unusable(_)));
                assert!(
                    is_refused || borders.contains(&cut) || cut > bytes.len(),
                    "cut at {cut}: {found:?}"
                );
            }
        }
    }
}

#[test]
fn a_component_with_a_bit_flipped_anywhere_is_judged_without_a_panic() {
    let honest = Stub::policy().component();
    for place in (0..honest.len()).step_by(61) {
        let mut bytes = honest.clone();
        bytes[place] ^= 1 << (place % 8);
        let _ = inspect(&bytes, Limits::DEFAULT);
    }
}

#[test]
fn random_damage_never_panics_and_never_borrows_a_digest() {
    let mut seeds: Vec<Vec<u8>> = corpus()
        .into_iter()
        .map(|case| case.bytes)
        .filter(|bytes| bytes.len() < 64 << 10)
        .collect();
    seeds.extend(["handler.wasm", "deliveries.wasm"].map(golden));
    for seed in rounds(40) {
        let random = &mut Random::new(seed);
        let mut bytes = seeds[random.below(seeds.len())].clone();
        for _ in 0..=random.below(4) {
            damage(&mut bytes, &seeds, random);
        }
        if let Ok(candidate) = prepare(&bytes, TIGHT, compile_here) {
            assert_eq!(candidate.digest, sha256_hex(&bytes));
        }
    }
}

/// One change: a bit, a byte, a cut, a part said twice, a part of another component, a number made large.
fn damage(bytes: &mut Vec<u8>, others: &[Vec<u8>], random: &mut Random) {
    if bytes.is_empty() {
        return;
    }
    let at = random.below(bytes.len());
    match random.below(7) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = random.byte(),
        2 => bytes.truncate(at),
        3 => bytes[at] = 0xff,
        4 => {
            let end = (at + random.below(64)).min(bytes.len());
            let part = bytes[at..end].to_vec();
            bytes.splice(at..at, part);
        }
        5 => {
            let end = (at + random.below(64)).min(bytes.len());
            bytes.drain(at..end);
        }
        _ => {
            let other = &others[random.below(others.len())];
            let from = random.below(other.len() + 1);
            let part = &other[from..(from + random.below(256)).min(other.len())];
            bytes.splice(at..at, part.iter().copied());
        }
    }
}
