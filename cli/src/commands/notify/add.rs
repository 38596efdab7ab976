//! `notify add`: binds a handler in the store.

use std::path::{Path, PathBuf};

use runwarden_host::model::{BoundHandler, DurationMs};
use runwarden_host::notify::settings::document;
use runwarden_host::verbs::bind;
use serde_json::{Map, Value, json};

use super::words::{filter, target};
use crate::context::{Context, operator};
use crate::errors::{Failure, Outcome};
use crate::output::{Page, Report, Style, Text};
use crate::parse;

/// Tell somebody of everything that ends, from now on
///
/// The binding is kept in the store and holds wherever no settings file says otherwise. One of that name is replaced. It is
/// judged whole before it is written.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(group = clap::ArgGroup::new("how").required(true).multiple(true).args(["url", "url_env", "exec", "file", "component"]))]
pub(crate) struct Args {
    /// Its name: letters, digits, `.`, `_`, `-`
    #[arg(value_name = "NAME")]
    name: String,
    /// Post to this URL
    #[arg(long, value_name = "U", conflicts_with_all = ["url_env", "exec", "file"], help_heading = "Where to")]
    url: Option<String>,
    /// Post to the URL in this variable
    #[arg(long, value_name = "V", conflicts_with_all = ["exec", "file"], help_heading = "Where to")]
    url_env: Option<String>,
    /// Sign with the secret in this variable; repeat it while keys are changed
    #[arg(long, value_name = "V", help_heading = "Where to")]
    secret_env: Vec<String>,
    /// Sign with the secret in this file; repeat it while keys are changed
    #[arg(long, value_name = "F", help_heading = "Where to")]
    secret_file: Vec<PathBuf>,
    /// Admit addresses of this machine and network, and http to them
    #[arg(long, help_heading = "Where to")]
    allow_private: bool,
    /// Start a program: `prog {payload}`, or its arguments as JSON; never a shell
    #[arg(long, value_name = "COMMAND", conflicts_with = "file", help_heading = "Where to")]
    exec: Option<String>,
    /// Append a line of JSON to this file
    #[arg(long, value_name = "F", help_heading = "Where to")]
    file: Option<PathBuf>,
    /// How long one attempt may take, at most 5m [default: 10s]
    #[arg(long, value_name = "D", value_parser = parse::duration, help_heading = "Where to")]
    timeout: Option<DurationMs>,
    /// The handler that plans what is sent: NAME, NAME@V or a digest [default: webhook, exec or file]
    #[arg(long, value_name = "C", help_heading = "What is sent")]
    component: Option<String>,
    /// Its configuration: K=V, or a file of TOML
    #[arg(long, value_name = "FILE|K=V", help_heading = "What is sent")]
    config: Vec<String>,
    /// Of these kinds alone
    #[arg(long, value_name = "KIND", value_delimiter = ',', num_args = 1.., help_heading = "When")]
    kinds: Vec<String>,
    /// When one of these statuses is entered
    #[arg(long, value_name = "S", value_delimiter = ',', num_args = 1.., help_heading = "When")]
    statuses: Vec<String>,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden notify add desk --exec 'notify-send {payload}'
  runwarden notify add ops --url https://example.org/hooks --secret-env OPS_HOOK_SECRET --statuses failed timed_out
  runwarden notify add journal --file ~/ends.jsonl --kinds run,session
  runwarden notify add mine --component my-handler@1 --config channel=ops --url https://example.org/x

`{payload}` alone as an argument is the notice; without it the notice is on standard input.";

/// What was bound.
pub(crate) struct Bound(BoundHandler);

/// Binds.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Bound> {
    let base = std::env::current_dir()
        .map_err(|error| Failure::usage("the working directory is gone").cause(error.to_string()))?;
    let settings = settings(args)?;
    let host = context.create()?;
    Ok(Bound(bind(&host, &args.name, &settings, &base, &operator())?))
}

/// The options in the shape of a handler's table.
fn settings(args: &Args) -> Outcome<Value> {
    let mut destination = Map::new();
    let transport = match (&args.url, &args.url_env, &args.exec, &args.file) {
        (Some(url), _, _, _) => {
            destination.insert("url".to_owned(), json!(url));
            Some("webhook")
        }
        (_, Some(name), _, _) => {
            destination.insert("url_env".to_owned(), json!(name));
            Some("webhook")
        }
        (_, _, Some(command), _) => {
            program(command, &mut destination)?;
            Some("exec")
        }
        (_, _, _, Some(path)) => {
            destination.insert("path".to_owned(), json!(text(path)?));
            Some("file")
        }
        _ => None,
    };
    if !args.secret_env.is_empty() {
        destination.insert("secret_env".to_owned(), json!(args.secret_env));
    }
    if !args.secret_file.is_empty() {
        let files: Vec<&str> = args.secret_file.iter().map(|path| text(path)).collect::<Outcome<_>>()?;
        destination.insert("secret_file".to_owned(), json!(files));
    }
    if args.allow_private {
        destination.insert("allow_private".to_owned(), json!(true));
    }
    if let Some(timeout) = args.timeout {
        destination.insert("timeout".to_owned(), json!(format!("{}ms", timeout.as_ms())));
    }
    let mut settings = json!({"state": "configured", "config": config(&args.config)?});
    settings["component"] = json!(args.component.as_deref().or(transport));
    if let Some(transport) = transport {
        destination.insert("transport".to_owned(), json!(transport));
        settings["destinations"] = json!({transport: destination});
    }
    let mut filter = Map::new();
    for (key, words) in [("kinds", &args.kinds), ("statuses", &args.statuses)] {
        if !words.is_empty() {
            filter.insert(key.to_owned(), json!(words));
        }
    }
    if !filter.is_empty() {
        settings["filter"] = Value::Object(filter);
    }
    Ok(settings)
}

/// A program as a list in JSON, or as one string.
fn program(command: &str, destination: &mut Map<String, Value>) -> Outcome<()> {
    if command.starts_with('[') {
        let argv: Vec<String> = serde_json::from_str(command)
            .map_err(|error| Failure::usage("--exec is no list of strings").cause(error.to_string()))?;
        destination.insert("argv".to_owned(), json!(argv));
    } else {
        destination.insert("command".to_owned(), json!(command));
    }
    Ok(())
}

/// A configuration: pairs, and files of TOML; a later one counts.
fn config(words: &[String]) -> Outcome<Map<String, Value>> {
    let mut config = Map::new();
    for word in words {
        if let Ok((name, value)) = parse::lenient_pair(word) {
            config.insert(name, value);
            continue;
        }
        let path = Path::new(word);
        let read = std::fs::read_to_string(path).map_err(|error| Failure::file("read", path, &error))?;
        let table = document(&read).map_err(|why| Failure::usage(format!("{word} is no TOML{why}")))?;
        config.extend(table);
    }
    Ok(config)
}

fn text(path: &Path) -> Outcome<&str> {
    path.to_str()
        .ok_or_else(|| Failure::usage(format!("{} is not UTF-8", path.display())))
}

impl Report for Bound {
    fn json(&self) -> Value {
        json!(self.0)
    }

    fn text(&self, page: &Page) -> Text {
        let handler = &self.0;
        let mut text = Text::styled(Style::Strong, &handler.name).and(format!(" is bound to {}", handler.component));
        for (name, destination) in &handler.destinations {
            let heading = Text::styled(Style::Dim, format!("{name:<10}")).and(" ");
            text.line(Text::hanging(heading, 11, target(destination), page));
        }
        let when = filter(&handler.filter);
        if !when.is_empty() {
            text.line(Text::styled(Style::Dim, format!("{:<10}", "when")).and(" ").and(when));
        }
        text
    }
}
