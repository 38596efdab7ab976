//! `outbox consumer`: who outside is owed events, and what each has acknowledged.

use runwarden_host::model::{Timestamp, validate_id};
use runwarden_host::store::{Acknowledged, Consumer};
use runwarden_host::verbs::outbox::{add_consumer, retire_consumer};
use serde_json::{Value, json};

use crate::app::report;
use crate::context::{Context, operator};
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;
use crate::output::{Column, Page, Report, Style, Table, Text, ago};
use crate::select::parse_since;

/// Programs that fetch events themselves: each is owed every one until it says that it has it
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Command {
    /// Add a consumer; it is owed the events from now on
    #[command(
        after_help = "EXAMPLES\n  runwarden outbox consumer add billing\n  runwarden outbox consumer add audit --all"
    )]
    Add {
        /// Its name
        name: String,
        /// It is owed events since then too: 2h, a date, yesterday, boot, or RFC 3339
        #[arg(long, value_name = "T", value_parser = parse_since, conflicts_with = "all")]
        since: Option<Timestamp>,
        /// It is owed every event there is
        #[arg(long)]
        all: bool,
    },
    /// List consumers, with how many events each is owed
    #[command(after_help = "EXAMPLES\n  runwarden outbox consumer ls")]
    Ls,
    /// Print the events that a consumer is owed, oldest first, one JSON document a line
    #[command(after_help = "EXAMPLES\n  runwarden outbox consumer pending billing --limit 10")]
    Pending {
        /// Its name
        name: String,
        /// At most so many
        #[arg(long, value_name = "N", default_value_t = 100)]
        limit: usize,
    },
    /// Say that a consumer has an event; twice is once
    #[command(after_help = "EXAMPLES\n  runwarden outbox consumer ack billing k3jm2vxq:7kq2m3vxhc:2")]
    Ack {
        /// Its name
        name: String,
        /// The event's id, `event_id` of its envelope
        #[arg(value_name = "EVENT_ID", required = true)]
        events: Vec<String>,
    },
    /// Retire a consumer: nothing is owed to it any more
    #[command(after_help = "EXAMPLES\n  runwarden outbox consumer retire billing")]
    Retire {
        /// Its name
        name: String,
    },
}

/// Does what one of them says.
pub(crate) fn execute(context: &Context, args: Args) -> Exit {
    match args.command {
        Command::Add { name, since, all } => report(context, add(context, &name, since, all)),
        Command::Ls => report(context, list(context)),
        Command::Pending { name, limit } => report(context, pending(context, &name, limit)),
        Command::Ack { name, events } => report(context, ack(context, &name, &events)),
        Command::Retire { name } => report(context, retire(context, &name)),
    }
}

/// A line for people and a document.
struct Said {
    document: Value,
    text: Text,
}

impl Report for Said {
    fn json(&self) -> Value {
        self.document.clone()
    }

    fn text(&self, _page: &Page) -> Text {
        self.text.clone()
    }
}

fn unknown(name: &str) -> Failure {
    Failure::new(
        Exit::UNKNOWN,
        "not_found",
        format!("no active consumer is named `{name}`"),
    )
    .hint("`runwarden outbox consumer ls` lists them")
}

fn add(context: &Context, name: &str, since: Option<Timestamp>, all: bool) -> Outcome<Said> {
    validate_id(name).map_err(|error| Failure::usage(error.to_string()))?;
    let host = context.create()?;
    let since = if all {
        None
    } else {
        Some(since.unwrap_or_else(|| host.now()))
    };
    let Some(consumer) = add_consumer(&host, name, since, &operator())? else {
        let said = format!("`{name}` is or was a consumer");
        return Err(Failure::new(Exit::CONFLICT, "taken", said)
            .hint("choose another name: what a retired one acknowledged would be taken for this one's"));
    };
    Ok(Said {
        document: json!({"name": consumer.name, "since": consumer.since.map(Timestamp::to_rfc3339)}),
        text: Text::styled(Style::Good, "added").and(format!(" {name}")),
    })
}

fn list(context: &Context) -> Outcome<Listing> {
    let Some(host) = context.read_if_present()? else {
        return Ok(Listing(Vec::new()));
    };
    Ok(Listing(host.store().consumers()?))
}

struct Listing(Vec<(Consumer, u64)>);

impl Report for Listing {
    fn json(&self) -> Value {
        let one = |(consumer, owed): &(Consumer, u64)| {
            json!({
                "name": consumer.name,
                "since": consumer.since.map(Timestamp::to_rfc3339),
                "created_at": consumer.created_at.to_rfc3339(),
                "retired_at": consumer.retired_at.map(Timestamp::to_rfc3339),
                "owed": owed,
            })
        };
        self.0.iter().map(one).collect()
    }

    fn text(&self, page: &Page) -> Text {
        if self.0.is_empty() {
            return Text::of("No consumers. `runwarden outbox consumer add NAME` adds one.");
        }
        let mut table = Table::new(&[
            Column::kept("NAME"),
            Column::kept("OWED"),
            Column::expendable("STATE", 1),
            Column::expendable("AGE", 2),
        ]);
        for (consumer, owed) in &self.0 {
            let state = consumer.retired_at.map_or("active", |_| "retired");
            table.row(vec![
                Text::styled(Style::Strong, &consumer.name),
                Text::of(owed.to_string()),
                Text::of(state),
                Text::styled(Style::Dim, ago(consumer.created_at, page)),
            ]);
        }
        table.text(page)
    }
}

struct Pending(Vec<Value>);

impl Report for Pending {
    fn json(&self) -> Value {
        Value::Array(self.0.clone())
    }

    fn text(&self, _page: &Page) -> Text {
        let mut text = Text::new();
        for envelope in &self.0 {
            text.line(Text::of(envelope.to_string()));
        }
        text
    }
}

fn pending(context: &Context, name: &str, limit: usize) -> Outcome<Pending> {
    let host = context.read()?;
    let owed = host.store().pending(name, limit)?.ok_or_else(|| unknown(name))?;
    Ok(Pending(owed.into_iter().map(|(_, envelope)| envelope).collect()))
}

fn ack(context: &Context, name: &str, events: &[String]) -> Outcome<Said> {
    let host = context.open()?;
    let mut documents = Vec::new();
    let mut text = Text::new();
    for event in events {
        let again = match host.store().acknowledge(name, event, host.now())? {
            Acknowledged::New => false,
            Acknowledged::Again => true,
            Acknowledged::NoConsumer => return Err(unknown(name)),
            Acknowledged::NoEvent => {
                let said = format!("no event is `{event}`");
                return Err(Failure::new(Exit::UNKNOWN, "not_found", said).hint(format!(
                    "`runwarden outbox consumer pending {name}` lists what it is owed"
                )));
            }
        };
        documents.push(json!({"consumer": name, "event_id": event, "again": again}));
        text.line(Text::styled(Style::Good, "acknowledged").and(format!(" {event}")));
    }
    Ok(Said {
        document: Value::Array(documents),
        text,
    })
}

fn retire(context: &Context, name: &str) -> Outcome<Said> {
    let host = context.open()?;
    if !retire_consumer(&host, name, &operator())? {
        return Err(unknown(name));
    }
    Ok(Said {
        document: json!({"name": name, "retired": true}),
        text: Text::styled(Style::Good, "retired").and(format!(" {name}: nothing is owed to it")),
    })
}
