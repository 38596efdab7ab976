//! `policy keygen`: makes a key to sign components with.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use runwarden_host::provenance::{PublicKey, SecretKey};
use serde_json::{Value, json};

use crate::context::operator;
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;
use crate::output::{Page, Report, Style, Text};

/// Make a key to sign components with
///
/// The secret half is written to FILE, which only you can read, without a passphrase; the public half to FILE.pub. Both are
/// in the form of OpenBSD's signify. Nothing is overwritten.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Where the secret half goes
    file: PathBuf,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden policy keygen ~/.config/runwarden/policies.key
  runwarden policy sign ./strict_play.wasm --key ~/.config/runwarden/policies.key

Who installs what you sign puts the key that is printed into settings.toml, below [policies.keys].";

/// The key that was made.
pub(crate) struct Made {
    file: PathBuf,
    public_file: PathBuf,
    public: PublicKey,
}

/// Makes it.
pub(crate) fn execute(args: &Args) -> Outcome<Made> {
    let mut public_file = args.file.clone().into_os_string();
    public_file.push(".pub");
    let public_file = PathBuf::from(public_file);
    let key = SecretKey::generate().map_err(|error| {
        Failure::new(Exit::IO, "system", "the system has no entropy to give").cause(error.to_string())
    })?;
    for (path, mode, text) in [
        // The public half first: a secret that nobody can be told of is worth nothing.
        (&public_file, 0o644, key.public().to_file()),
        (&args.file, 0o600, key.to_file()),
    ] {
        write_new(path, mode, &text)?;
    }
    Ok(Made {
        file: args.file.clone(),
        public_file,
        public: key.public(),
    })
}

fn write_new(path: &Path, mode: u32, text: &str) -> Outcome<()> {
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)
        .and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
    written.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Failure::new(Exit::CONFLICT, "exists", format!("{} is there already", path.display()))
                .hint("choose another name: a key is never overwritten")
        }
        _ => Failure::file("write", path, &error),
    })
}

impl Report for Made {
    fn json(&self) -> Value {
        json!({
            "secret_file": self.file.to_string_lossy(),
            "public_file": self.public_file.to_string_lossy(),
            "key_id": self.public.id.to_string(),
            "key": self.public.to_setting(),
        })
    }

    fn text(&self, page: &Page) -> Text {
        let words = format!(
            "keep {} to yourself; {} is for others.",
            self.file.display(),
            self.public_file.display()
        );
        let mut text = Text::hanging(
            Text::styled(Style::Strong, self.public.id.to_string()).and("  "),
            2,
            words,
            page,
        );
        text.line(Text::of("Who trusts it writes into settings.toml:"));
        text.line(Text::of("[policies.keys]"));
        text.line(Text::of(format!(
            "{} = \"{}\"",
            operator().id,
            self.public.to_setting()
        )));
        text
    }
}
