//! Options that raise limits for one component, and how limits are told.

use std::time::Duration;

use runwarden_host::model::{DurationMs, Limit, RaisedLimits};
use runwarden_host::policy::Limits;
use serde_json::{Value, json};

use crate::output::size;
use crate::parse;

/// Limits of one component: for every other they stay. Flatten it into a command that takes a component's file.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitArgs {
    /// Memory of one call, 16MiB to 512MiB
    #[arg(long, value_name = "SIZE", value_parser = parse::size)]
    memory: Option<u64>,
    /// Size of the component, 8MiB to 64MiB
    #[arg(long, value_name = "SIZE", value_parser = parse::size)]
    component_size: Option<u64>,
    /// Instructions of one call, 50 to 20,000 million
    #[arg(long, value_name = "N")]
    fuel: Option<u64>,
    /// Time of one call, 250ms to 10s
    #[arg(long, value_name = "D", value_parser = parse::duration)]
    wall: Option<DurationMs>,
    /// Processor time of compiling it, 60s to 10m
    #[arg(long, value_name = "D", value_parser = parse::duration)]
    compile_time: Option<DurationMs>,
    /// Memory of compiling it, 1GiB to 8GiB
    #[arg(long, value_name = "SIZE", value_parser = parse::size)]
    compile_memory: Option<u64>,
}

impl LimitArgs {
    /// What was asked for.
    pub(crate) fn raised(&self) -> RaisedLimits {
        let milliseconds = |length: DurationMs| u64::try_from(length.as_ms()).unwrap_or_default();
        let asked = [
            (Limit::Memory, self.memory),
            (Limit::ComponentSize, self.component_size),
            (Limit::Fuel, self.fuel),
            (Limit::Wall, self.wall.map(milliseconds)),
            (Limit::CompileTime, self.compile_time.map(milliseconds)),
            (Limit::CompileMemory, self.compile_memory),
        ];
        asked.into_iter().filter_map(|(limit, to)| Some((limit, to?))).collect()
    }
}

/// The option that raises a limit.
pub(crate) const fn option(limit: Limit) -> &'static str {
    match limit {
        Limit::Memory => "--memory",
        Limit::ComponentSize => "--component-size",
        Limit::Fuel => "--fuel",
        Limit::Wall => "--wall",
        Limit::CompileTime => "--compile-time",
        Limit::CompileMemory => "--compile-memory",
    }
}

/// The options that raise these limits, as they are typed, a space before each.
pub(super) fn options(raised: &RaisedLimits) -> String {
    const MIB: u64 = 1 << 20;
    let options = raised.iter().map(|(limit, to)| {
        let option = option(limit);
        match limit {
            Limit::Wall | Limit::CompileTime if to % 1_000 == 0 => format!(" {option} {}s", to / 1_000),
            Limit::Wall | Limit::CompileTime => format!(" {option} {to}ms"),
            Limit::Memory | Limit::ComponentSize | Limit::CompileMemory if to % MIB == 0 => {
                format!(" {option} {}MiB", to / MIB)
            }
            Limit::Fuel | Limit::Memory | Limit::ComponentSize | Limit::CompileMemory => format!(" {option} {to}"),
        }
    });
    options.collect()
}

/// Raised limits in a few words: `memory 128.0 MiB, wall 1.5 s`.
pub(super) fn raised_words(raised: &RaisedLimits) -> String {
    let words = raised.iter().map(|(limit, to)| {
        let name = option(limit).trim_start_matches('-').replace('-', " ");
        match limit {
            Limit::Memory | Limit::ComponentSize | Limit::CompileMemory => format!("{name} {}", size(to)),
            Limit::Fuel => format!("{name} {} million", to / 1_000_000),
            Limit::Wall | Limit::CompileTime => format!("{name} {} s", Duration::from_millis(to).as_secs_f64()),
        }
    });
    words.collect::<Vec<_>>().join(", ")
}

/// The limits of a component as a document.
pub(super) fn limits_json(limits: &Limits) -> Value {
    json!({
        "fuel": limits.fuel,
        "wall_ms": u64::try_from(limits.wall.as_millis()).unwrap_or(u64::MAX),
        "memory_bytes": limits.memory_bytes,
        "answer_bytes": limits.answer_bytes,
        "host_call_bytes": limits.host_call_bytes,
        "stack_bytes": limits.stack_bytes,
        "component_bytes": limits.component_bytes,
        "compile": {
            "processor_ms": u64::try_from(limits.compile.processor.as_millis()).unwrap_or(u64::MAX),
            "wall_ms": u64::try_from(limits.compile.wall.as_millis()).unwrap_or(u64::MAX),
            "memory_bytes": limits.compile.memory_bytes,
        },
    })
}

/// The limits of a component in words.
pub(super) fn limits_words(limits: &Limits) -> String {
    let (millions, mib) = (limits.fuel / 1_000_000, limits.memory_bytes >> 20);
    let (wall, kib) = (limits.wall.as_millis(), limits.answer_bytes >> 10);
    let (seconds, compiler_mib) = (limits.compile.processor.as_secs(), limits.compile.memory_bytes >> 20);
    format!(
        "a call: {millions} million instructions, {wall} ms, {mib} MiB of memory, answers of {kib} KiB; \
         compiling it: {seconds} s of processor time, {compiler_mib} MiB"
    )
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        limits: LimitArgs,
    }

    #[test]
    fn every_limit_has_an_option_whose_help_names_its_bounds() {
        for limit in Limit::ALL {
            let to = Limits::CEILING.get(limit);
            let word = match limit {
                Limit::Wall | Limit::CompileTime => format!("{to}ms"),
                _ => to.to_string(),
            };
            let line = Line::try_parse_from(["line", option(limit), &word]).expect("an option");
            let raised = line.limits.raised();
            assert_eq!(raised, [(limit, to)].into_iter().collect());
            assert_eq!(Limits::DEFAULT.admit(&raised), Ok(()));
        }
        let bounds = |limit| (Limits::DEFAULT.get(limit), Limits::CEILING.get(limit));
        assert_eq!(bounds(Limit::Memory), (16 << 20, 512 << 20));
        assert_eq!(bounds(Limit::ComponentSize), (8 << 20, 64 << 20));
        assert_eq!(bounds(Limit::Fuel), (50_000_000, 20_000_000_000));
        assert_eq!(bounds(Limit::Wall), (250, 10_000));
        assert_eq!(bounds(Limit::CompileTime), (60_000, 600_000));
        assert_eq!(bounds(Limit::CompileMemory), (1 << 30, 8 << 30));
    }

    #[test]
    fn raised_limits_can_be_typed_again() {
        let raised: RaisedLimits = Limit::ALL
            .map(|limit| (limit, Limits::CEILING.get(limit) - 1_001))
            .into_iter()
            .collect();
        for raised in [
            raised,
            [(Limit::Memory, 32 << 20), (Limit::CompileTime, 300_000)]
                .into_iter()
                .collect(),
        ] {
            let words = format!("line{}", options(&raised));
            let line = Line::try_parse_from(words.split(' ')).expect("options");
            assert_eq!(line.limits.raised(), raised, "{words}");
        }
    }

    #[test]
    fn raised_limits_are_told_by_the_names_of_their_options() {
        let raised = [
            (Limit::Wall, 1_500),
            (Limit::Memory, 128 << 20),
            (Limit::Fuel, 90_000_000),
        ];
        let words = raised_words(&raised.into_iter().collect());
        assert_eq!(words, "memory 128.0 MiB, fuel 90 million, wall 1.5 s");
    }
}
