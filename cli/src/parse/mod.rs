//! From words on the command line to values; every error names the word and says what to type.

mod moment;
mod pairs;
mod since;
mod size;

pub(crate) use moment::moment;
pub(crate) use pairs::{actor, evidence, json_pair, lenient_pair, object, progress, text_pair};
pub(crate) use since::since;
pub(crate) use size::size;

pub(crate) use runwarden_host::model::{parse_duration as duration, parse_signal as signal};
