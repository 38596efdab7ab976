//! Attending a run in the foreground: its output copied as it comes, its signals and its terminal, until its end is
//! recorded.
//!
//! The logs in the run directory are the one source of output: the shim says when they grow, what is new is copied. If
//! this process dies, the run goes on and its end is recorded by the shim.

mod copy;
mod keyboard;
mod signals;
mod terminal;

use std::io::IsTerminal as _;
use std::time::Duration;

use anyhow::Result;
use runwarden_host::model::{Cause as EndCause, DurationMs, Entity, Runtime};
use runwarden_host::process::{Cause, Event, Patience, Slot, boottime_ms};
use runwarden_host::verbs::{Running, settle};
use runwarden_host::{Host, Watch};
use tokio::io::unix::AsyncFd;

pub(crate) use terminal::{Streams, window};

use crate::exit::Exit;
use copy::{Copied, Copier};
use keyboard::{Key, Keyboard};
use signals::{Received, Signals};
use terminal::RawMode;

/// What the user asked of the attendance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attendance {
    /// From the first signal of a stop to KILL.
    pub(crate) grace: Duration,
    /// What the loss of the terminal means.
    pub(crate) on_hangup: OnHangup,
    /// What is said beside the program's own output.
    pub(crate) words: Words,
}

/// What the loss of the terminal means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OnHangup {
    /// Everything is stopped.
    Stop,
    /// The run goes on without us.
    Detach,
}

/// What is said beside the program's own output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Words {
    /// Hints are given: a person watches.
    Terminal,
    /// Nothing is said while it runs.
    None,
}

/// How the attendance ended.
#[derive(Debug)]
pub(crate) enum Attended {
    /// The run's end is recorded.
    Ended(Box<Entity>),
    /// The run goes on without us.
    Detached,
}

/// Attends a run until its end is recorded, or it is left to itself.
pub(crate) async fn attend(host: &Host, running: Running, asked: Attendance) -> Result<Attended> {
    let Running {
        entity,
        directory,
        control,
        terminal,
        stdin,
    } = running;
    // On its own pseudo-terminal the program hears no signal of ours: the first one already means us.
    let interrupts = u32::from(terminal.is_some());
    let typed_at_a_terminal = terminal.is_some() && std::io::stdin().is_terminal();
    let _raw = typed_at_a_terminal.then(RawMode::enter).transpose()?;
    let mut keyboard = terminal.map_or_else(|| Keyboard::feeding(stdin), Keyboard::for_terminal)?;
    let mut signals = Signals::listen()?;
    let watch = host.wake_file().watch();
    let mut copier = Copier::new(&directory);
    // SAFETY: `Control` owns its socket, and neither closes nor replaces it while `AsyncFd` has it.
    let control = unsafe { AsyncFd::register(control) }.map_err(std::io::Error::from)?;
    let mut attendant = Attendant {
        control: Some(control),
        asked,
        interrupts,
    };
    loop {
        let copied = copier.copy_new(attendant.control.as_ref().map(AsyncFd::get_ref))?;
        tokio::select! {
            // What the user wants comes before what the program says.
            biased;
            received = signals.next() => {
                if attendant.obey(received) == Leaving::Leave {
                    return Ok(Attended::Detached);
                }
            }
            key = keyboard.next() => match key {
                Key::Detach => {
                    attendant.detach();
                    return Ok(Attended::Detached);
                }
                Key::Closed => attendant.close_stdin(),
            },
            event = attendant.next_event() => match event? {
                Event::Output => {}
                Event::CloseStdin => {
                    keyboard.close();
                    attendant.close_stdin();
                }
                Event::Ended | Event::ShimGone => break,
            },
            () = tokio::task::yield_now(), if copied == Copied::Part => {}
        }
    }
    let entity = recorded_end(host, entity, &watch, (&mut attendant, &mut signals, &mut copier)).await?;
    copier.copy_rest()?;
    Ok(Attended::Ended(Box::new(entity)))
}

/// Waits until the end is recorded: at once when the set is empty, else when the stop that goes on is over.
async fn recorded_end(
    host: &Host,
    mut entity: Entity,
    watch: &Watch,
    (attendant, signals, copier): (&mut Attendant, &mut Signals, &mut Copier),
) -> Result<Entity> {
    loop {
        if let Some(found) = host.store().load(&entity.reference.id)? {
            entity = settle(host, found)?;
        }
        let runtimes = host.store().runtimes(Some(std::slice::from_ref(&entity.reference)))?;
        // A stopped run whose status is no end stays so: its policy has no way from there to the end it had.
        let is_over = |runtime: &Runtime| runtime.is_stopped() || runtime.stop_unconfirmed;
        if entity.terminal || runtimes.iter().all(is_over) {
            return Ok(entity);
        }
        copier.copy_new(attendant.control.as_ref().map(AsyncFd::get_ref))?;
        tokio::select! {
            () = watch.changed() => {}
            _ = attendant.next_event() => {}
            received = signals.next() => { attendant.obey(received); }
        }
    }
}

/// Speaks to the shim for the user.
struct Attendant {
    control: Option<AsyncFd<runwarden_host::process::Control>>,
    asked: Attendance,
    interrupts: u32,
}

/// Whether to leave the run to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaving {
    Stay,
    Leave,
}

impl Attendant {
    /// The shim's next event; never comes back once the shim is gone.
    async fn next_event(&mut self) -> Result<Event> {
        let Some(control) = self.control.as_mut() else {
            return std::future::pending().await;
        };
        loop {
            let mut ready = control.readable_mut().await?;
            match ready.get_inner_mut().receive()? {
                Some(Event::ShimGone) => {
                    self.control = None;
                    return Ok(Event::ShimGone);
                }
                Some(event) => return Ok(event),
                None => ready.clear_ready(),
            }
        }
    }

    /// Does what a signal means.
    fn obey(&mut self, received: Received) -> Leaving {
        match received {
            Received::Interrupt => {
                self.interrupts += 1;
                match self.interrupts {
                    1 => self.say("interrupt passed on; press Ctrl-C again to stop everything it started"),
                    2 => self.stop(
                        Cause::Interrupt,
                        Patience::Grace {
                            ms: milliseconds(self.asked.grace),
                        },
                    ),
                    _ => self.stop(Cause::Interrupt, Patience::Force),
                }
            }
            Received::Terminate => {
                self.stop(
                    Cause::Terminate,
                    Patience::Grace {
                        ms: milliseconds(self.asked.grace),
                    },
                );
            }
            Received::Hangup if self.asked.on_hangup == OnHangup::Detach => {
                self.detach();
                return Leaving::Leave;
            }
            Received::Hangup => self.stop(
                Cause::Hangup,
                Patience::Grace {
                    ms: milliseconds(self.asked.grace),
                },
            ),
            Received::Window => {
                if let (Some(control), Some(window)) = (&self.control, window()) {
                    // A lost size is corrected by the next one.
                    let _ = control.get_ref().set_window(window);
                }
            }
        }
        Leaving::Stay
    }

    fn stop(&self, cause: Cause, patience: Patience) {
        let slot = Slot {
            cause,
            patience,
            at_ms: boottime_ms(),
            code: String::new(),
            actor: "operator:terminal".to_owned(),
            note: String::new(),
        };
        let told = self.control.as_ref().map(|control| control.get_ref().stop(&slot));
        if let Some(Err(error)) = told {
            tracing::warn!(%error, "the shim did not take the request to stop");
        }
    }

    fn detach(&mut self) {
        let told = self.control.take().map(|control| control.into_inner().detach());
        if let Some(Err(error)) = told {
            tracing::warn!(%error, "the shim did not take leave");
        }
    }

    fn close_stdin(&self) {
        if let Some(control) = &self.control {
            // A shim that is gone has closed it.
            let _ = control.get_ref().close_stdin();
        }
    }

    fn say(&self, words: &str) {
        if self.asked.words == Words::Terminal {
            terminal::say(words);
        }
    }
}

fn milliseconds(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

/// The code a foreground run exits with: the program's, 128 + n when it died by signal n, 124 when its deadline ended
/// it, 1 when it exited with 0 and was no success all the same.
pub(crate) fn exit_code(entity: &Entity) -> Exit {
    let structural = &entity.structural;
    if structural.cause.as_deref() == Some(EndCause::Timeout.word()) {
        return Exit::TIMED_OUT;
    }
    match Exit::of_program(structural.exit_code, structural.term_signal) {
        Some(exit) if exit != Exit::DONE || entity.success => exit,
        Some(_) => Exit::NO,
        None if entity.success => Exit::DONE,
        None => Exit::NO,
    }
}

/// How long a run took, from creation to its recorded end.
pub(crate) fn took(entity: &Entity) -> DurationMs {
    entity
        .structural
        .ended_at
        .unwrap_or(entity.updated_at)
        .since(entity.created_at)
}
