//! `compile`: compiles one component within bounds. The host starts it; people need it never.

use std::io::Read as _;

use runwarden_host::verbs::compile_bounded;

use crate::context::Context;
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;

/// Compile the component on standard input, within bounds, to standard output
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Processor time, in seconds
    processor_seconds: u64,
    /// Memory to write to, in bytes
    memory_bytes: u64,
}

/// Compiles. No store is opened.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Exit> {
    let mut bytes = Vec::new();
    let input = std::io::stdin().lock().read_to_end(&mut bytes);
    input.map_err(|error| Failure::new(Exit::IO, "system", "cannot read the component").cause(error.to_string()))?;
    let output = &context.output;
    Ok(
        match compile_bounded(args.processor_seconds, args.memory_bytes, &bytes) {
            Ok(code) => output.ended(output.bytes(code.bytes()), Exit::DONE),
            Err(why) => output.ended(output.bytes(why.as_bytes()), REFUSED),
        },
    )
}

/// The host reads the answer by this code.
const REFUSED: Exit = Exit::UNUSABLE;

#[cfg(test)]
mod tests {
    use runwarden_host::verbs::COMPILE_REFUSED;

    use super::*;

    #[test]
    fn the_host_is_told_of_a_refusal_by_the_code_it_waits_for() {
        assert_eq!(i32::from(REFUSED.code()), COMPILE_REFUSED);
    }
}
