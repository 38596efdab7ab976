//! The size of the program.

use anyhow::Result;

use crate::harness::{Effort, Row, Target, program};

const MEGABYTES_MAX: f64 = 20.0;

/// Of the file as built: the release profile strips it.
pub(super) fn figure(_effort: Effort) -> Result<Vec<Row>> {
    #[expect(clippy::cast_precision_loss, reason = "files are far below 2^52 bytes")]
    let megabytes = std::fs::metadata(program()?)?.len() as f64 / 1e6;
    Ok(vec![Row::value(
        "the program, stripped",
        megabytes,
        "MB",
        Target::AtMost(MEGABYTES_MAX),
    )])
}
