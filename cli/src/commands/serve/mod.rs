//! `serve`: what a store needs done while nobody types, in one process.

mod address;
mod health;
mod http;
mod metrics;
mod once;
mod presence;
mod service;
mod unit;

use std::net::SocketAddr;

use runwarden_host::model::DurationMs;

use crate::app::report;
use crate::context::Context;
use crate::exit::Exit;
use crate::parse;
use crate::queueing::queue_name;

/// Deliver notices, keep queues, fire schedules, repair what died; run what is queued
///
/// Nothing needs it: commands do each of these for what they touch. With it up, notices are sent at once and tried again when
/// they are due, runs whose shim was killed are found, and retention needs no cron.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Where /healthz and /metrics are answered; a loopback address
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7117", value_parser = address::loopback)]
    listen: SocketAddr,
    /// Run what is queued, so much at once, as a worker does [default: nothing]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    slots: Option<u16>,
    /// With --slots: take from this queue; several: from any of them [default: all]
    #[arg(long = "queue", value_name = "Q", value_parser = queue_name, requires = "slots")]
    queues: Vec<String>,
    /// From the end of a lease to giving its worker up [default: lease_grace of the settings, else as the policies say, 20s]
    #[arg(long, value_name = "D", value_parser = parse::duration, allow_negative_numbers = true)]
    lease_grace: Option<DurationMs>,
    /// One pass of everything, then end
    #[arg(long, conflicts_with_all = ["listen", "install", "slots", "lease_grace"])]
    once: bool,
    /// Write the unit of the user's systemd, and enable and start it
    #[arg(long)]
    install: bool,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden serve
  runwarden serve --listen 127.0.0.1:0 --json      # a free port; the answer says which
  runwarden serve --slots 4                        # and run what is queued: no other worker is needed
  runwarden serve --install                        # as a service of the user's systemd
  */5 * * * * runwarden serve --once               # as a line for cron instead

One serves a store. TERM or Ctrl-C: nothing new is begun, what is on its way is finished, what its slots run included; once
more: what its slots run is stopped and given back; once more: at once. The address is kept in serve.json of the home.

EXIT CODES
  0 it was told to stop; --once: all was done, or a service is up   1 --once: something failed; --install: not enabled
  3 it was told again to stop                                       4 another service is up";

/// Does what the options say.
pub(crate) fn execute(context: &Context, args: &Args) -> Exit {
    if args.once {
        return report(context, once::execute(context));
    }
    if args.install {
        return report(context, unit::execute(context, args));
    }
    service::execute(context, args).unwrap_or_else(|failure| context.output.failure(&failure))
}
