//! One file per figure.

mod backlog;
mod bare;
mod claims;
mod cold;
mod decide;
mod deliveries;
mod ends;
mod fences;
mod fill;
mod growth;
mod guard;
mod idle;
mod isolation;
mod memory;
mod notices;
mod ping;
mod plan;
mod queued;
mod raw;
mod renewals;
mod replay;
mod size;
mod start;
mod stop;
mod transitions;
mod written;

use anyhow::Result;

use crate::harness::{Effort, Row};

/// What measures a figure.
pub type Figure = fn(Effort) -> Result<Vec<Row>>;

/// Every figure, by name, in the order in which they are measured.
pub const FIGURES: &[(&str, Figure)] = &[
    ("decide", decide::figure),
    ("guard", guard::figure),
    ("plan", plan::figure),
    ("isolation", isolation::figure),
    ("transitions", transitions::figure),
    ("replay", replay::figure),
    ("notices", notices::figure),
    ("deliveries", deliveries::figure),
    ("written", written::figure),
    ("cold", cold::figure),
    ("start", start::figure),
    ("stop", stop::figure),
    ("memory", memory::figure),
    ("size", size::figure),
    ("growth", growth::figure),
    ("claims", claims::figure),
    ("fences", fences::figure),
    ("idle", idle::figure),
    ("renewals", renewals::figure),
    ("backlog", backlog::figure),
    ("ends", ends::figure),
];

/// Seconds as text, in the unit that reads best.
fn time(seconds: f64) -> String {
    match seconds {
        small if small < 1e-6 => format!("{:.0} ns", small * 1e9),
        small if small < 1e-3 => format!("{:.1} µs", small * 1e6),
        small if small < 1.0 => format!("{:.2} ms", small * 1e3),
        _ => format!("{seconds:.2} s"),
    }
}
