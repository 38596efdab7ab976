//! The time, injected.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::SystemTime;

use crate::model::Timestamp;
use crate::process::boottime_ms;

/// Where the time of a command comes from.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    /// The machine's clock.
    #[default]
    System,
    /// A clock that tests set, in milliseconds since the epoch.
    Set(Arc<AtomicI64>),
}

impl Clock {
    /// The moment now.
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System => {
                let since = SystemTime::now()
                    .duration_since(SystemTime::UNIX_EPOCH)
                    .unwrap_or_default();
                Timestamp::from_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
            }
            Self::Set(ms) => Timestamp::from_ms(ms.load(Ordering::Relaxed)),
        }
    }

    /// The boot clock: how long the machine has been up, sleep included. It never jumps. A clock that tests set stands for
    /// both, and its offset is none.
    pub(crate) fn since_boot(&self) -> SinceBoot {
        match self {
            Self::System => SinceBoot::Ms(i64::try_from(boottime_ms()).unwrap_or(i64::MAX)),
            Self::Set(ms) => SinceBoot::Steady(Timestamp::from_ms(ms.load(Ordering::Relaxed))),
        }
    }
}

/// What a clock tells of elapsed time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SinceBoot {
    /// Milliseconds of the boot clock: an offset makes steady time of them.
    Ms(i64),
    /// Steady time itself.
    Steady(Timestamp),
}
