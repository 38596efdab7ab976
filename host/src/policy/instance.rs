//! The one constructor of stores, and the host's side of `diagnostics`.

use wasmtime::component::{Component, HasSelf, InstancePre, Linker};
use wasmtime::{ResourceLimiter, Store, StoreLimits, StoreLimitsBuilder, Trap};

use super::bindings::runwarden::host::diagnostics;
use super::fault::PolicyFault;
use super::limits::{
    DIAGNOSTIC_LINE_BYTES_MAX, DIAGNOSTIC_LINES_MAX, EPOCH_TICK, INSTANCES_MAX, Limits, TABLE_ELEMENTS_MAX,
};

/// What the host keeps for one call.
pub(super) struct CallState {
    policy: String,
    limits: Limits,
    inner: StoreLimits,
    /// A memory or table wanted more than its limit.
    memory_refused: bool,
    lines: usize,
    /// What the component said of its panic.
    panic: Option<String>,
}

impl ResourceLimiter for CallState {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        let answer = self.inner.memory_growing(current, desired, maximum);
        self.memory_refused |= !matches!(answer, Ok(true));
        answer
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        let answer = self.inner.table_growing(current, desired, maximum);
        self.memory_refused |= !matches!(answer, Ok(true));
        answer
    }

    fn instances(&self) -> usize {
        self.inner.instances()
    }

    fn tables(&self) -> usize {
        self.inner.tables()
    }

    fn memories(&self) -> usize {
        self.inner.memories()
    }
}

impl diagnostics::Host for CallState {
    fn log(&mut self, level: String, message: String) {
        self.lines += 1;
        if self.lines > DIAGNOSTIC_LINES_MAX {
            return;
        }
        let (policy, message) = (self.policy.as_str(), cut(&message));
        match level.as_str() {
            "error" => tracing::error!(policy, "{message}"),
            "warn" => tracing::warn!(policy, "{message}"),
            "info" => tracing::info!(policy, "{message}"),
            _ => tracing::debug!(policy, "{message}"),
        }
    }

    fn report_panic(&mut self, message: String, file: String, line: i64, column: i64) {
        self.panic = Some(format!("{} at {}:{line}:{column}", cut(&message), cut(&file)));
    }
}

fn cut(text: &str) -> &str {
    let mut end = text.len().min(DIAGNOSTIC_LINE_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A store with every limit set: the only place that makes one. Instantiation counts against the limits too.
pub(super) fn store(engine: &wasmtime::Engine, policy: &str, limits: Limits) -> Store<CallState> {
    let inner = StoreLimitsBuilder::new()
        .memory_size(limits.memory_bytes)
        .table_elements(TABLE_ELEMENTS_MAX)
        .instances(INSTANCES_MAX)
        .tables(INSTANCES_MAX)
        .memories(INSTANCES_MAX)
        .trap_on_grow_failure(true)
        .build();
    let state = CallState {
        policy: policy.to_owned(),
        limits,
        inner,
        memory_refused: false,
        lines: 0,
        panic: None,
    };
    let mut store = Store::new(engine, state);
    store.limiter(|state| state);
    store.set_fuel(limits.fuel).expect("the engine counts fuel");
    let ticks = limits.wall.as_millis().div_ceil(EPOCH_TICK.as_millis());
    store.set_epoch_deadline(u64::try_from(ticks).unwrap_or(u64::MAX));
    store.epoch_deadline_trap();
    store.set_hostcall_fuel(limits.host_call_bytes.min(limits.answer_bytes));
    store
}

/// The component with its one import resolved, ready to be instantiated any number of times.
pub(super) fn link(component: &Component) -> wasmtime::Result<InstancePre<CallState>> {
    let mut linker = Linker::new(component.engine());
    diagnostics::add_to_linker::<_, HasSelf<CallState>>(&mut linker, |state| state)?;
    linker.instantiate_pre(component)
}

/// Tells why a call failed, by cause.
pub(super) fn classify(store: &Store<CallState>, function: &'static str, error: &wasmtime::Error) -> PolicyFault {
    let state = store.data();
    let policy = state.policy.clone();
    let limits = state.limits;
    if state.memory_refused {
        return PolicyFault::OutOfMemory {
            policy,
            function,
            limit_bytes: limits.memory_bytes,
        };
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => PolicyFault::OutOfFuel {
            policy,
            function,
            fuel: limits.fuel,
        },
        Some(Trap::Interrupt) => PolicyFault::OutOfTime {
            policy,
            function,
            limit_ms: limits.wall.as_millis(),
        },
        Some(trap) => {
            let message = state.panic.clone().unwrap_or_else(|| trap.to_string());
            let backtrace = error.downcast_ref::<wasmtime::WasmBacktrace>().map(ToString::to_string);
            PolicyFault::Trapped {
                policy,
                function,
                message,
                backtrace: backtrace.unwrap_or_default(),
            }
        }
        // No trap: the component returned, and what it returned could not be taken in.
        None => PolicyFault::BadAnswer {
            policy,
            function,
            why: format!("{error:#}"),
        },
    }
}
