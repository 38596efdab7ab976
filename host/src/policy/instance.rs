//! The one constructor of stores, and what the host keeps for a call.

use wasmtime::component::{Component, InstancePre, Linker};
use wasmtime::{ResourceLimiter, Store, Trap, WasmBacktrace};

use super::fault::PolicyFault;
use super::limits::{DIAGNOSTIC_LINES_MAX, EPOCH_TICK, INSTANCES_MAX, Limits, TABLE_ELEMENTS_MAX};
use super::line::Line;
use super::text::line;

/// What the host keeps for one call.
pub(super) struct CallState {
    policy: String,
    limits: Limits,
    /// Bytes of all its memories.
    memory_bytes: usize,
    /// Elements of all its tables.
    table_elements: usize,
    lines: usize,
    /// What the component said of its panic.
    panic: Option<String>,
}

/// A limit on what a component holds was reached. It ends the call: a failed growth that the component could see would
/// become a panic of its own, and nobody would learn the cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Held {
    #[error("memory")]
    Memory,
    #[error("table elements")]
    Elements,
}

impl ResourceLimiter for CallState {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        if !fits(desired, maximum) {
            return Ok(false);
        }
        self.memory_bytes = grown(self.memory_bytes, current, desired);
        if self.memory_bytes > self.limits.memory_bytes {
            Err(wasmtime::Error::new(Held::Memory))
        } else {
            Ok(true)
        }
    }

    fn memory_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        Err(wasmtime::Error::new(Held::Memory))
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        if !fits(desired, maximum) {
            return Ok(false);
        }
        self.table_elements = grown(self.table_elements, current, desired);
        if self.table_elements > TABLE_ELEMENTS_MAX {
            Err(wasmtime::Error::new(Held::Elements))
        } else {
            Ok(true)
        }
    }

    fn table_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        Err(wasmtime::Error::new(Held::Elements))
    }

    fn instances(&self) -> usize {
        INSTANCES_MAX
    }

    fn tables(&self) -> usize {
        INSTANCES_MAX
    }

    fn memories(&self) -> usize {
        INSTANCES_MAX
    }
}

/// A growth past the maximum that the component itself declared is its own affair: it is told no.
fn fits(desired: usize, maximum: Option<usize>) -> bool {
    maximum.is_none_or(|maximum| desired <= maximum)
}

fn grown(total: usize, current: usize, desired: usize) -> usize {
    total.saturating_add(desired.saturating_sub(current))
}

impl CallState {
    /// How much linear memory its instance has.
    pub(super) const fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// Takes a line of diagnostics; what is past the limit of one call is dropped.
    pub(super) fn note(&mut self, level: &str, message: &str) {
        self.lines += 1;
        if self.lines > DIAGNOSTIC_LINES_MAX {
            return;
        }
        let (policy, message) = (self.policy.as_str(), line(message));
        match level {
            "error" => tracing::error!(policy, "{message}"),
            "warn" => tracing::warn!(policy, "{message}"),
            "info" => tracing::info!(policy, "{message}"),
            _ => tracing::debug!(policy, "{message}"),
        }
    }

    /// Takes what a component says of its panic, before the trap.
    pub(super) fn panicked(&mut self, message: &str, file: &str, line_number: i64, column: i64) {
        self.panic = Some(format!("{} at {}:{line_number}:{column}", line(message), line(file)));
    }
}

/// A store with every limit set: the only place that makes one. Instantiation counts against the limits too.
pub(super) fn store(engine: &wasmtime::Engine, policy: &str, limits: Limits) -> Store<CallState> {
    let policy = policy.to_owned();
    let state = CallState {
        policy,
        limits,
        memory_bytes: 0,
        table_elements: 0,
        lines: 0,
        panic: None,
    };
    let mut store = Store::new(engine, state);
    store.limiter(|state| state);
    store.set_fuel(limits.fuel).expect("the engine counts fuel");
    let ticks = limits.wall.as_millis().div_ceil(EPOCH_TICK.as_millis());
    store.set_epoch_deadline(u64::try_from(ticks).unwrap_or(u64::MAX));
    store.epoch_deadline_trap();
    // The engine has one number for both directions out of a component; answers are weighed when they are here.
    store.set_hostcall_fuel(limits.host_call_bytes.max(limits.answer_bytes));
    store
}

/// A component with its one import resolved, ready to be instantiated any number of times.
#[derive(Clone)]
pub(super) struct Linked {
    /// The WIT line it speaks.
    pub(super) line: Line,
    pub(super) pre: InstancePre<CallState>,
}

/// Links a component by the WIT line that it speaks.
///
/// # Errors
/// It speaks none that this host speaks, or imports what it may not.
pub(super) fn link(component: &Component) -> wasmtime::Result<Linked> {
    let line = Line::of_component(component).ok_or_else(|| {
        let spoken = Line::all_in_words();
        wasmtime::Error::msg(format!(
            "it exports nothing of WIT {spoken}, which this runwarden speaks"
        ))
    })?;
    let mut linker = Linker::new(component.engine());
    (line.adapter().link)(&mut linker)?;
    let pre = linker.instantiate_pre(component)?;
    Ok(Linked { line, pre })
}

/// Tells why a component could not be made ready for a call, by cause.
pub(super) fn classify_start(store: &Store<CallState>, function: &'static str, error: &wasmtime::Error) -> PolicyFault {
    match classify(store, function, error) {
        PolicyFault::BadAnswer { policy, why, .. } => PolicyFault::NotLoadable { policy, why },
        fault => fault,
    }
}

/// Tells why a call failed, by cause.
pub(super) fn classify(store: &Store<CallState>, function: &'static str, error: &wasmtime::Error) -> PolicyFault {
    let state = store.data();
    let policy = state.policy.clone();
    let limits = state.limits;
    match error.downcast_ref::<Held>() {
        Some(Held::Memory) => {
            return PolicyFault::OutOfMemory {
                policy,
                function,
                limit_bytes: limits.memory_bytes,
            };
        }
        Some(Held::Elements) => {
            return PolicyFault::OutOfElements {
                policy,
                function,
                limit: TABLE_ELEMENTS_MAX,
            };
        }
        None => {}
    }
    let backtrace = error.downcast_ref::<WasmBacktrace>().map(frames);
    let trapped = |message: String, backtrace: Option<String>| PolicyFault::Trapped {
        policy: state.policy.clone(),
        function,
        message,
        backtrace: backtrace.unwrap_or_default(),
    };
    match (error.downcast_ref::<Trap>(), backtrace) {
        (Some(Trap::OutOfFuel), _) => PolicyFault::OutOfFuel {
            policy,
            function,
            fuel: limits.fuel,
        },
        (Some(Trap::Interrupt), _) => PolicyFault::OutOfTime {
            policy,
            function,
            limit_ms: limits.wall.as_millis(),
        },
        (Some(trap), backtrace) => trapped(state.panic.clone().unwrap_or_else(|| in_words(*trap)), backtrace),
        // No trap, and code of the component is on the stack: it asked the host for too much.
        (None, Some(backtrace)) => trapped(line(&error.root_cause().to_string()), Some(backtrace)),
        // No trap, no code on the stack: it returned, and what it returned could not be taken in.
        (None, None) => PolicyFault::BadAnswer {
            policy,
            function,
            why: line(&format!("{error:#}")),
        },
    }
}

/// The frames, one a line; the names in them are the component's.
fn frames(backtrace: &WasmBacktrace) -> String {
    let lines: Vec<String> = backtrace.to_string().lines().map(line).collect();
    lines.join("\n")
}

/// A trap's own words; where a stack lies in linear memory, its end is met as a bad access.
fn in_words(trap: Trap) -> String {
    match trap {
        Trap::StackOverflow => "the stack is exhausted: a recursion without end?".to_owned(),
        Trap::MemoryOutOfBounds => format!("{trap}: a recursion without end, or a bad pointer"),
        _ => trap.to_string(),
    }
}
