//! The `runwarden` command: arguments in, reports out.

mod advice;
mod app;
mod args;
mod commands;
mod context;
mod draw;
mod errors;
mod exit;
mod foreground;
mod notify;
mod output;
mod parse;
mod queueing;
mod select;
mod signals;
mod work;

use std::process::ExitCode;

fn main() -> ExitCode {
    app::main(std::env::args_os().collect()).into()
}
