//! The service in this process: the lock, the parts, the signals.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use runwarden_host::Host;
use runwarden_host::process::{ServiceLock, Serving, serve_alone};
use runwarden_host::verbs::lease::{Until, WorkerOptions};
use runwarden_host::verbs::{Labour, Service, serve};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::presence::Presence;
use super::{Args, http};
use crate::context::{Context, precious};
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;
use crate::notify::lease_grace;
use crate::signals::Signals;
use crate::work::{inherited, machine};

/// Serves until it is told to stop.
pub(super) fn execute(context: &Context, args: &Args) -> Outcome<Exit> {
    let host = context.create()?;
    let _lock = lock(&host)?;
    let listener = bind(args.listen)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| system("cannot wait", &error))?;
    let exit = up((context, args), &host, &runtime, listener);
    // Who was told again and again to stop waits for nothing any more.
    runtime.shutdown_background();
    // What this process ended is told by whoever delivers next.
    drop(host.take_enqueued());
    exit
}

fn up((context, args): (&Context, &Args), host: &Arc<Host>, runtime: &Runtime, listener: TcpListener) -> Outcome<Exit> {
    let address = listener.local_addr().map_err(|error| system("cannot listen", &error))?;
    let mut signals = runtime.block_on(async { Signals::watch() })?;
    let presence = Presence::announce(host.config().home(), address, &host.now().to_rfc3339())?;
    let output = context.output;
    let service = Arc::new(Service::new(move |line: &str| output.warn(line)));
    let answers = http::answer(listener, Arc::clone(host), Arc::clone(&service));
    let (at_work, working) = (Arc::clone(&service), Arc::clone(host));
    let labour = labour(context, args);
    let has_slots = labour.worker.is_some();
    let parts = runtime.spawn_blocking(move || serve(&working, &at_work, (&precious(), &labour)));
    let said = context.output.report(&presence, &context.page());
    if said != Exit::DONE {
        service.stop();
    }
    runtime.spawn(answers);
    runtime.block_on(until_stopped((&service, has_slots), parts, &mut signals))
}

/// What the service does for queued work.
fn labour(context: &Context, args: &Args) -> Labour {
    let grace = lease_grace(context, args.lease_grace);
    let worker = args.slots.map(|slots| WorkerOptions {
        name: machine(),
        slots: usize::from(slots),
        queues: args.queues.clone(),
        until: Until::Stopped,
        grace,
        environment: inherited(),
    });
    Labour { grace, worker }
}

/// One serves a store; what is there dies with its process, however that ends.
fn lock(host: &Host) -> Outcome<ServiceLock> {
    let database = host.config().database_path();
    match serve_alone(&database).map_err(|error| Failure::file("lock", &database, &error))? {
        Serving::Ours(lock) => Ok(lock),
        Serving::Others(pid) => {
            let who = pid.map_or_else(String::new, |pid| format!(": process {pid}"));
            let message = format!("a service is up for {} already{who}", database.display());
            let presence = host.config().home().join("serve.json");
            Err(Failure::new(Exit::CONFLICT, "served", message)
                .hint(format!("`cat {}` says where it listens", presence.display())))
        }
    }
}

fn bind(listen: SocketAddr) -> Outcome<TcpListener> {
    let bound = TcpListener::bind(listen).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    bound.map_err(|error| {
        Failure::new(Exit::IO, "system", format!("cannot listen on {listen}"))
            .cause(error.to_string())
            .hint(format!(
                "`runwarden serve --listen {}:0` takes a free port",
                bracketed(listen)
            ))
    })
}

/// The address without its port, as it is written before one.
fn bracketed(address: SocketAddr) -> String {
    match address {
        SocketAddr::V4(address) => address.ip().to_string(),
        SocketAddr::V6(address) => format!("[{}]", address.ip()),
    }
}

/// Waits for a signal, then for the parts to end, or for another signal; with slots there is one more on the way.
async fn until_stopped(
    (service, has_slots): (&Service, bool),
    mut parts: JoinHandle<()>,
    signals: &mut Signals,
) -> Outcome<Exit> {
    tokio::select! {
        ended = &mut parts => return Ok(verdict(ended.is_ok())),
        () = signals.next() => service.stop(),
    }
    if has_slots {
        tokio::select! {
            ended = &mut parts => return Ok(verdict(ended.is_ok())),
            () = signals.next() => service.give_back(),
        }
    }
    tokio::select! {
        ended = &mut parts => Ok(verdict(ended.is_ok())),
        () = signals.next() => Ok(Exit::UNFINISHED),
    }
}

/// The parts end when they are told to; a panic of theirs was told.
const fn verdict(ended_well: bool) -> Exit {
    if ended_well { Exit::DONE } else { Exit::FAULT }
}

fn system(what: &str, error: &std::io::Error) -> Failure {
    Failure::new(Exit::IO, "system", what).cause(error.to_string())
}
