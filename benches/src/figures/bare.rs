//! The floor of a call into a component: a bare program with the same engine, limits and arguments, and nothing else.

use std::time::Duration;

use runwarden_host::policy::Limits;
use wasmtime::component::{Component, HasSelf, Instance, InstancePre, Linker};
use wasmtime::{Config, Engine, Store, StoreLimits, StoreLimitsBuilder};

use bindings::runwarden::host::diagnostics;

pub(super) mod bindings {
    #![allow(unreachable_pub, reason = "generated code")]

    wasmtime::component::bindgen!({
        inline: "
            package runwarden:benches@0.1.0;
            world called {
                import runwarden:host/diagnostics@0.1.0;
                export runwarden:policy/guard@0.1.0;
                export runwarden:notify/notifier@0.1.0;
            }
        ",
        path: ["../wit/types", "../wit/host", "../wit/policy", "../wit/notify"],
        world: "runwarden:benches/called",
    });
}

/// What the floor keeps for one call.
pub(super) struct State {
    limits: StoreLimits,
}

impl diagnostics::Host for State {
    fn log(&mut self, _level: String, _message: String) {}
    fn report_panic(&mut self, _message: String, _file: String, _line: i64, _column: i64) {}
}

/// One engine, one component, a fresh store for every call.
pub(super) struct Bare {
    engine: Engine,
    pub(super) pre: InstancePre<State>,
}

impl Bare {
    pub(super) fn new(bytes: &[u8]) -> wasmtime::Result<Self> {
        let mut config = Config::new();
        config
            .consume_fuel(true)
            .epoch_interruption(true)
            .cranelift_nan_canonicalization(true);
        config
            .wasm_relaxed_simd(false)
            .max_wasm_stack(Limits::DEFAULT.stack_bytes);
        let engine = Engine::new(&config)?;
        let weak = engine.weak();
        std::thread::spawn(move || {
            while let Some(engine) = weak.upgrade() {
                engine.increment_epoch();
                drop(engine);
                std::thread::park_timeout(Duration::from_millis(10));
            }
        });
        let mut linker = Linker::new(&engine);
        diagnostics::add_to_linker::<_, HasSelf<State>>(&mut linker, |state| state)?;
        let pre = linker.instantiate_pre(&Component::new(&engine, bytes)?)?;
        Ok(Self { engine, pre })
    }

    /// An instance in a store of its own.
    pub(super) fn enter(&self) -> wasmtime::Result<(Store<State>, Instance)> {
        let limits = Limits::DEFAULT;
        let memory = StoreLimitsBuilder::new()
            .memory_size(limits.memory_bytes)
            .trap_on_grow_failure(true);
        let mut store = Store::new(&self.engine, State { limits: memory.build() });
        store.limiter(|state| &mut state.limits);
        store.set_fuel(limits.fuel)?;
        store.set_epoch_deadline(25);
        store.epoch_deadline_trap();
        store.set_hostcall_fuel(limits.answer_bytes);
        let instance = self.pre.instantiate(&mut store)?;
        Ok((store, instance))
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it stands in `map_err`")]
pub(super) fn in_words(error: wasmtime::Error) -> anyhow::Error {
    anyhow::Error::msg(format!("{error:#}"))
}
