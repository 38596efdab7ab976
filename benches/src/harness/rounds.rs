//! Rounds that alternate, so that what the machine does meanwhile hits ours and the floor alike.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::usage::cpu_time;

/// One round of one contender.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// Operations made.
    pub operations: u64,
    /// Time on the clock.
    pub wall: Duration,
    /// Processor time.
    pub cpu: Duration,
}

impl Sample {
    /// Time on the clock of one operation, in seconds.
    pub fn each(&self) -> f64 {
        self.wall.as_secs_f64() / self.count()
    }

    /// Processor time of one operation, in seconds.
    pub fn each_cpu(&self) -> f64 {
        self.cpu.as_secs_f64() / self.count()
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of operations are far below 2^52")]
    fn count(&self) -> f64 {
        self.operations.max(1) as f64
    }
}

/// Measures `operations` operations made by one call.
///
/// # Errors
/// What the work reports.
pub fn measured(operations: u64, work: impl FnOnce() -> Result<()>) -> Result<Sample> {
    let (started, cpu) = (Instant::now(), cpu_time());
    work()?;
    Ok(Sample {
        operations,
        wall: started.elapsed(),
        cpu: cpu_time().saturating_sub(cpu),
    })
}

/// Rounds of both contenders in turn, each first every other time; one round of each warms up and is not kept.
///
/// # Errors
/// What a contender reports.
pub fn interleave(
    rounds: usize,
    mut ours: impl FnMut() -> Result<Sample>,
    mut floor: impl FnMut() -> Result<Sample>,
) -> Result<(Vec<Sample>, Vec<Sample>)> {
    let (mut of_ours, mut of_floor) = (Vec::new(), Vec::new());
    ours()?;
    floor()?;
    for round in 0..rounds {
        if round % 2 == 0 {
            of_ours.push(ours()?);
            of_floor.push(floor()?);
        } else {
            of_floor.push(floor()?);
            of_ours.push(ours()?);
        }
    }
    Ok((of_ours, of_floor))
}

/// The median of some values; 0 of none.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => values[odd / 2],
        even => f64::midpoint(values[even / 2 - 1], values[even / 2]),
    }
}
