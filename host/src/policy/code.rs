//! Compiled code on its way from the compiler to the engine.

use wasmtime::Engine;
use wasmtime::component::Component;

use super::engine::engine;
use super::fault::{InstallError, PolicyFault};
use super::text::line;

/// The code of a component, made by this engine's compiler in this process or in one that this process started.
///
/// Code is run without checks, so nothing else makes one: a file or a stranger cannot.
pub struct Code(Vec<u8>);

impl std::fmt::Debug for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Code({} bytes)", self.0.len())
    }
}

impl Code {
    /// What a compiler that we started answered.
    pub(crate) fn from_worker(answer: Vec<u8>) -> Self {
        Self(answer)
    }

    /// The bytes, for whoever started this compiler.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The component, ready to be linked. Code of another version of the engine is refused.
    pub(super) fn load(&self) -> wasmtime::Result<Component> {
        self.load_in(engine()?)
    }

    /// The same in an engine of this configuration.
    pub(super) fn load_in(&self, engine: &Engine) -> wasmtime::Result<Component> {
        // SAFETY: the bytes are what this engine's compiler gave: the two constructors admit no others.
        unsafe { load(engine, &self.0) }
    }
}

/// The component of compiled code: the only place that takes code in.
///
/// # Safety
/// The bytes are what this engine's compiler gave, and nobody else could have changed them.
pub(super) unsafe fn load(engine: &Engine, code: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: the caller vouches for the bytes.
    unsafe { Component::deserialize(engine, code) }
}

/// Compiles a component that [`super::inspect`] found valid. Nothing bounds the time and the memory that it takes.
///
/// # Errors
/// The compiler's own words: it does not take this component.
pub fn compile(bytes: &[u8]) -> Result<Code, String> {
    let compiled = engine().and_then(|engine| engine.precompile_component(bytes));
    compiled.map(Code).map_err(|error| line(&format!("{error:#}")))
}

/// Compiles in this process, for [`super::prepare`], where nobody has a program to do it within bounds.
///
/// # Errors
/// The compiler does not take this component.
pub fn compile_here(policy: &str, bytes: &[u8]) -> Result<Code, InstallError> {
    compile(bytes).map_err(|why| {
        InstallError::Fault(PolicyFault::NotLoadable {
            policy: policy.to_owned(),
            why,
        })
    })
}
