//! The commands: a file for each, with its arguments, what it does, and its report. None of them prints.

pub(crate) mod compile;
pub(crate) mod completions;
pub(crate) mod create;
pub(crate) mod demo;
pub(crate) mod doctor;
mod entity;
pub(crate) mod finish;
pub(crate) mod history;
pub(crate) mod kill;
pub(crate) mod logs;
pub(crate) mod ls;
pub(crate) mod man;
pub(crate) mod notify;
pub(crate) mod outbox;
pub(crate) mod policy;
mod processes;
pub(crate) mod prune;
pub(crate) mod report;
pub(crate) mod rm;
pub(crate) mod run;
pub(crate) mod runtime;
pub(crate) mod schedule;
pub(crate) mod serve;
pub(crate) mod show;
pub(crate) mod transition;
pub(crate) mod wait;
pub(crate) mod why;
