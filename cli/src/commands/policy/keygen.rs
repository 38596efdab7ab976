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
/// The secret half is written to FILE, which only you can read, without a passphrase; the public half beside it: NAME.pub for
/// NAME.sec, else FILE.pub. Both are in the form of OpenBSD's signify. Nothing is overwritten.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Where the secret half goes
    file: PathBuf,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden policy keygen ~/.config/runwarden/policies.sec
  runwarden policy sign ./strict_play.wasm --key ~/.config/runwarden/policies.sec

Who installs what you sign puts the key that is printed into settings.toml, below [policies.keys].";

/// The key that was made.
pub(crate) struct Made {
    file: PathBuf,
    public_file: PathBuf,
    public: PublicKey,
}

/// Makes it.
pub(crate) fn execute(args: &Args) -> Outcome<Made> {
    let public_file = public_file(&args.file);
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

/// NAME.sec has NAME.pub beside it, as signify wants it; any other name has .pub behind it.
fn public_file(secret: &Path) -> PathBuf {
    if secret.extension().is_some_and(|end| end == "sec") {
        return secret.with_extension("pub");
    }
    let mut name = secret.as_os_str().to_owned();
    name.push(".pub");
    PathBuf::from(name)
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

/// A name as TOML takes it on the left: a dot in it would open a table.
fn bare_or_quoted(name: &str) -> String {
    let is_bare = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if is_bare {
        name.to_owned()
    } else {
        format!("\"{name}\"")
    }
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
        let name = bare_or_quoted(&operator().id);
        text.line(Text::of(format!("{name} = \"{}\"", self.public.to_setting())));
        text
    }
}
