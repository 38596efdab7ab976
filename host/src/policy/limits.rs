//! What a component may use in one call.

use std::time::Duration;

use crate::model::{Invalid, Limit, RaisedLimits};

/// What a component may use in one call. Operators raise them for single components ([`RaisedLimits`]): an interpreter of a
/// whole language is larger than what it interprets.
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
    /// Room for a component of nearly the largest size admitted: 7.3 MB of plain code took 6 s of processor time in a
    /// development build.
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

    /// The furthest that an operator raises them for one component. Whoever waits for a call waits for at most `wall`, and
    /// calls that run beside each other each have their memory.
    pub const CEILING: Self = Self {
        fuel: 20_000_000_000,
        wall: Duration::from_secs(10),
        memory_bytes: 512 << 20,
        component_bytes: 64 << 20,
        compile: CompileLimits {
            processor: Duration::from_secs(600),
            wall: Duration::from_secs(1_800),
            memory_bytes: 8 << 30,
        },
        ..Self::DEFAULT
    };

    /// One of the limits that can be raised, in the unit of its word.
    pub fn get(&self, limit: Limit) -> u64 {
        let milliseconds = |length: Duration| u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
        let bytes = |size: usize| u64::try_from(size).unwrap_or(u64::MAX);
        match limit {
            Limit::Memory => bytes(self.memory_bytes),
            Limit::ComponentSize => bytes(self.component_bytes),
            Limit::Fuel => self.fuel,
            Limit::Wall => milliseconds(self.wall),
            Limit::CompileTime => milliseconds(self.compile.processor),
            Limit::CompileMemory => bytes(self.compile.memory_bytes),
        }
    }

    /// These limits, where a component has none of its own.
    #[must_use]
    pub fn raised(self, raised: &RaisedLimits) -> Self {
        raised.iter().fold(self, |limits, (limit, to)| limits.with(limit, to))
    }

    fn with(mut self, limit: Limit, to: u64) -> Self {
        let bytes = usize::try_from(to).unwrap_or(usize::MAX);
        match limit {
            Limit::Memory => self.memory_bytes = bytes,
            Limit::ComponentSize => self.component_bytes = bytes,
            Limit::Fuel => self.fuel = to,
            Limit::Wall => self.wall = Duration::from_millis(to),
            Limit::CompileTime => {
                // The clock stays as far behind the processor as it is for every component.
                self.compile.wall += Duration::from_millis(to)
                    .saturating_sub(self.compile.processor)
                    .saturating_mul(3);
                self.compile.processor = Duration::from_millis(to);
            }
            Limit::CompileMemory => self.compile.memory_bytes = bytes,
        }
        self
    }

    /// Whether a component may have these limits where every other has `self`.
    ///
    /// # Errors
    /// [`Invalid`]: one is lower than it is for every component, or beyond [`Limits::CEILING`].
    pub fn admit(&self, wished: &RaisedLimits) -> Result<(), Invalid> {
        for (limit, to) in wished.iter() {
            let (least, most) = (self.get(limit), Self::CEILING.get(limit));
            if to < least || to > most {
                let word = limit.word();
                let message = format!("{word} of {to} is not between {least}, which every component has, and {most}");
                return Err(Invalid::new("limit", message, None));
            }
        }
        Ok(())
    }
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
