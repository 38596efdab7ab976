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
    /// What compiling it may take.
    pub compile: CompileLimits,
}

/// What compiling one component may take: what a few bytes of it cost the compiler is a stranger's choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompileLimits {
    /// Processor time, all threads together, in whole seconds: what decides, because a busy machine does not change it.
    pub processor: Duration,
    /// Time on the clock: the backstop for what waits instead of working.
    pub wall: Duration,
    /// Memory that the compiler may write to.
    pub memory_bytes: usize,
}

impl CompileLimits {
    /// Room for a component of nearly the largest size admitted: 7.3 MB of plain code took 6 s of processor time in an
    /// development build. An interpreter of a whole language was not tried.
    pub const DEFAULT: Self = Self {
        processor: Duration::from_secs(60),
        wall: Duration::from_secs(180),
        memory_bytes: 1 << 30,
    };
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
        compile: CompileLimits::DEFAULT,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Threads of a compiler: each needs memory of its own, which must not depend on the machine.
pub(crate) const COMPILE_THREADS: usize = 4;

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
