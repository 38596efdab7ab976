//! What a component may use in one call.

use std::time::Duration;

/// What a component may use in one call. Operators may raise them; JavaScript wants 128 MiB of memory, Python 256.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// WebAssembly instructions, roughly: what decides, because it is the same on every machine.
    pub fuel: u64,
    /// Time on the clock: the backstop for what fuel does not see.
    pub wall: Duration,
    /// Linear memory, all of a component's memories together.
    pub memory_bytes: usize,
    /// What an answer may weigh: the bytes of its texts; of a descriptor, its canonical JSON.
    pub answer_bytes: usize,
    /// What may cross to the host in one call of `diagnostics`.
    pub host_call_bytes: usize,
    /// The stack of one call.
    pub stack_bytes: usize,
    /// The size of the component itself.
    pub component_bytes: usize,
}

impl Limits {
    /// For policies as they ship: the costliest bundled call uses under a hundredth of the fuel.
    pub const DEFAULT: Self = Self {
        fuel: 50_000_000,
        wall: Duration::from_millis(250),
        memory_bytes: 16 << 20,
        answer_bytes: 256 << 10,
        host_call_bytes: 4 << 20,
        stack_bytes: 512 << 10,
        component_bytes: 8 << 20,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Instances, tables and memories of one component: a composed component has a few of each.
pub(super) const INSTANCES_MAX: usize = 64;

/// Table elements of one component, all its tables together; a Rust guest has some hundreds, a JavaScript engine some thousands.
pub(super) const TABLE_ELEMENTS_MAX: usize = 100_000;

/// Length of a tick of the epoch clock.
pub(super) const EPOCH_TICK: Duration = Duration::from_millis(10);

/// How many lines of diagnostics one call may leave; later ones are dropped and counted.
pub(super) const DIAGNOSTIC_LINES_MAX: usize = 64;

/// How long one line of diagnostics may be; the rest is cut.
pub(super) const DIAGNOSTIC_LINE_BYTES_MAX: usize = 4 << 10;
