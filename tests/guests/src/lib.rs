//! Components for tests: the hostile one in every mode, the corpus around it, and the examples.

mod corpus;

pub use corpus::{Asked, Case, Stub, WASI_INTERFACES, World, corpus, sections};
pub use runwarden_guest_hostile::{MARKER, Mode};

#[expect(unreachable_pub, reason = "written by the build script")]
mod bytes {
    include!(concat!(env!("OUT_DIR"), "/guests.rs"));
}

/// The example `agent` as a component.
pub const AGENT: &[u8] = bytes::AGENT;

/// The example `ci-job` as a component.
pub const CI_JOB: &[u8] = bytes::CI_JOB;

/// The example `cost-budget` as a component.
pub const COST_BUDGET: &[u8] = bytes::COST_BUDGET;

/// The example `session-paused` as a component.
pub const SESSION_PAUSED: &[u8] = bytes::SESSION_PAUSED;

/// The example `strict-play` as a component.
pub const STRICT_PLAY: &[u8] = bytes::STRICT_PLAY;

/// The example `two-person-approval` as a component.
pub const TWO_PERSON_APPROVAL: &[u8] = bytes::TWO_PERSON_APPROVAL;

/// The example of tickets in Rust as a component.
pub const TICKET: &[u8] = bytes::TICKET;

/// The kit's example of a policy with every optional part as a component.
pub const REVIEW: &[u8] = bytes::REVIEW;

/// The hostile policy in a mode: the one build with its two digits replaced.
///
/// # Panics
/// The build does not hold the marker exactly once.
pub fn hostile(mode: Mode) -> Vec<u8> {
    in_mode(bytes::HOSTILE, mode)
}

/// The hostile handler in a mode, likewise.
///
/// # Panics
/// As [`hostile`].
pub fn hostile_handler(mode: Mode) -> Vec<u8> {
    in_mode(bytes::HOSTILE_HANDLER, mode)
}

fn in_mode(build: &[u8], mode: Mode) -> Vec<u8> {
    let mut bytes = build.to_vec();
    let places: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(MARKER)).collect();
    let [place] = places[..] else {
        panic!("the marker stands in the component {} times", places.len())
    };
    let digits = format!("{:02}", mode as u8);
    let at = place + MARKER.len();
    bytes[at..at + digits.len()].copy_from_slice(digits.as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::{Mode, hostile};

    #[test]
    fn each_mode_is_the_same_build_but_for_its_digits() {
        let honest = hostile(Mode::Honest);
        for mode in Mode::ALL {
            let differing = hostile(*mode)
                .iter()
                .zip(&honest)
                .filter(|(one, other)| one != other)
                .count();
            assert!(differing <= 2, "{mode:?}");
            assert_eq!(differing == 0, *mode == Mode::Honest, "{mode:?}");
        }
    }
}
