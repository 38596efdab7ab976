//! The engine: made when a component must run, and not before.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use wasmtime::{Config, Engine, OptLevel};

use super::limits::{EPOCH_TICK, Limits};

/// How many engines this process has made.
static ENGINES: AtomicUsize = AtomicUsize::new(0);

/// How many engines this process has made. Commands that only read data make none; tests hold them to it.
pub fn engines_made() -> usize {
    ENGINES.load(Ordering::Relaxed)
}

/// The process's engine. One configuration serves every component, so that compiled code fits every use.
///
/// # Errors
/// The configuration does not suit this processor.
pub(super) fn engine() -> Result<&'static Engine, wasmtime::Error> {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    if let Some(engine) = ENGINE.get() {
        return Ok(engine);
    }
    let made = engine_apart()?;
    let mut is_new = false;
    let engine = ENGINE.get_or_init(|| {
        is_new = true;
        made
    });
    if is_new {
        ENGINES.fetch_add(1, Ordering::Relaxed);
        tracing::debug!("engine made");
        start_clock(engine);
    }
    Ok(engine)
}

/// An engine of its own, of the same configuration, without a clock.
///
/// # Errors
/// As [`engine`].
pub(super) fn engine_apart() -> Result<Engine, wasmtime::Error> {
    Engine::new(&config())
}

/// Deterministic: no threads, no relaxed vector instructions, one bit pattern for NaN. The same call with the same
/// arguments uses the same fuel and gives the same answer, which is what makes replay honest.
fn config() -> Config {
    let mut config = Config::new();
    config
        .wasm_component_model(true)
        .consume_fuel(true)
        .epoch_interruption(true)
        .cranelift_nan_canonicalization(true)
        .wasm_relaxed_simd(false)
        .max_wasm_stack(Limits::DEFAULT.stack_bytes);
    if cfg!(debug_assertions) {
        // The compiler itself is hardly optimised then, and tests compile much and run little. Fuel is counted before.
        config.cranelift_opt_level(OptLevel::None);
    }
    config
}

/// Advances the epoch from a thread of its own, for as long as the engine lives.
#[expect(clippy::disallowed_methods, reason = "a clock's tick is time that passes")]
fn start_clock(engine: &Engine) {
    let weak = engine.weak();
    let ticking = move || {
        while let Some(engine) = weak.upgrade() {
            engine.increment_epoch();
            drop(engine);
            std::thread::sleep(EPOCH_TICK);
        }
    };
    // Without the clock, fuel still ends every call.
    if let Err(error) = std::thread::Builder::new().name("epoch".to_owned()).spawn(ticking) {
        tracing::warn!(%error, "no thread for the epoch clock: calls are limited by fuel alone");
    }
}
