//! Looking into a component before it is installed: everything that can be found out about it, and nothing written.

use std::ffi::OsString;

use crate::error::Error;
use crate::host::{Config, Host};
use crate::model::{RaisedLimits, sha256_hex};
use crate::policy::{
    COMPILATION, COMPILE_THREADS, Candidate, Code, CompileLimits, InstallError, Limits, PolicyFault, compile,
    compile_here, prepare, prepare_on_trial,
};
use crate::process::{BoundedEnd, bound_self, run_bounded};

/// What a compiler that was asked by [`examine`] ends with when it does not take the component; its answer says why.
pub const COMPILE_REFUSED: i32 = 65;

/// Checks a component as installing it would, with limits that are raised as they would be.
///
/// It is compiled by the program of the configuration, in a process that is ended when it takes more than the limits
/// admit. Without such a program it is compiled in this process, unbounded: a library that lets strangers install names
/// one.
///
/// # Errors
/// It is unusable (every problem is told), a limit cannot be raised that far, or the program cannot be started.
pub fn examine(host: &Host, bytes: &[u8], wished: &RaisedLimits) -> Result<Candidate, Error> {
    let (limits, _) = limits_for(host, &sha256_hex(bytes), wished)?;
    prepare(bytes, limits, |policy, bytes| {
        compiled(host.config(), limits.compile, policy, bytes)
    })
}

/// The same without a store: for whoever makes a component.
///
/// # Errors
/// As of [`examine`].
pub fn examine_made(config: &Config, bytes: &[u8], raised: &RaisedLimits) -> Result<Candidate, Error> {
    config.limits.admit(raised)?;
    let limits = config.limits.raised(raised);
    prepare(bytes, limits, |policy, bytes| {
        compiled(config, limits.compile, policy, bytes)
    })
}

/// The same for a component that is only to be tried: errors in its descriptor are findings.
///
/// # Errors
/// It cannot be tried, a limit cannot be raised that far, or the program cannot be started.
pub fn examine_on_trial(config: &Config, bytes: &[u8], raised: &RaisedLimits) -> Result<Candidate, Error> {
    config.limits.admit(raised)?;
    let limits = config.limits.raised(raised);
    prepare_on_trial(bytes, limits, |policy, bytes| {
        compiled(config, limits.compile, policy, bytes)
    })
}

fn compiled(config: &Config, bounds: CompileLimits, policy: &str, bytes: &[u8]) -> Result<Code, Error> {
    let Some(program) = &config.compiler else {
        return Ok(compile_here(policy, bytes)?);
    };
    let arguments = arguments(config, bounds);
    let threads = COMPILE_THREADS.to_string();
    let variables = [("RAYON_NUM_THREADS", threads.as_str())];
    let end = run_bounded((program, &arguments), &variables, bytes, bounds.wall)?;
    Ok(code(policy, bounds, end)?)
}

/// The limits of a component, and which of them are raised: by these wishes, else by those it was installed with.
///
/// # Errors
/// A limit cannot be raised that far, or the store cannot be read.
pub fn limits_for(host: &Host, digest: &str, wished: &RaisedLimits) -> Result<(Limits, RaisedLimits), Error> {
    let raised = wished.or(&host.store().raised_limits(digest)?);
    let limits = host.policies().limits();
    limits.admit(&raised)?;
    Ok((limits.raised(&raised), raised))
}

/// Compiles within bounds, in a process that does nothing else: what the program of [`examine`] does with its arguments.
///
/// # Errors
/// The compiler's own words; the answer with [`COMPILE_REFUSED`].
pub fn compile_bounded(processor_seconds: u64, memory_bytes: u64, bytes: &[u8]) -> Result<Code, String> {
    let processor = std::time::Duration::from_secs(processor_seconds);
    bound_self(processor, memory_bytes).map_err(|error| error.to_string())?;
    compile(bytes)
}

fn arguments(config: &Config, bounds: CompileLimits) -> [OsString; 5] {
    [
        "--home".into(),
        config.home().into(),
        "compile".into(),
        bounds.processor.as_secs().to_string().into(),
        bounds.memory_bytes.to_string().into(),
    ]
}

/// What the compiler's end says of the component.
fn code(policy: &str, bounds: CompileLimits, end: BoundedEnd) -> Result<Code, InstallError> {
    let policy = policy.to_owned();
    let not_loadable = |why: String| PolicyFault::NotLoadable {
        policy: policy.clone(),
        why,
    };
    let fault = match end {
        BoundedEnd::Exited { code: 0, answer } => return Ok(Code::from_worker(answer)),
        BoundedEnd::Exited {
            code: COMPILE_REFUSED,
            answer,
        } => not_loadable(String::from_utf8_lossy(&answer).into_owned()),
        BoundedEnd::Exited { code, .. } => not_loadable(format!("its compiler ended with {code}")),
        BoundedEnd::Died(signal) => not_loadable(format!("its compiler died by signal {signal}")),
        BoundedEnd::OutOfTime => PolicyFault::OutOfTime {
            policy,
            function: COMPILATION,
            limit_ms: bounds.processor.as_millis(),
        },
        BoundedEnd::OutOfMemory => PolicyFault::OutOfMemory {
            policy,
            function: COMPILATION,
            limit_bytes: bounds.memory_bytes,
        },
    };
    Err(InstallError::Fault(fault))
}
