//! `policy sign`: vouches for a component.

use std::path::PathBuf;

use runwarden_host::Error;
use runwarden_host::policy::{Limits, inspect};
use runwarden_host::provenance::{PublicKey, SecretKey};
use serde_json::{Value, json};

use super::find::read;
use super::offer::signature_path;
use crate::errors::{Failure, Outcome};
use crate::output::{Page, Report, Style, Text};

/// Sign a component
///
/// The signature is a file of its own, beside the component, in the form of OpenBSD's signify; it is over the component's
/// bytes. Nothing but a component is signed.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The component, a .wasm file
    file: PathBuf,
    /// The secret half of a key, as `policy keygen` makes it
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Where the signature goes [default: the component's name with .sig behind it]
    #[arg(long, value_name = "FILE")]
    signature: Option<PathBuf>,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden policy sign ./strict_play.wasm --key ~/.config/runwarden/policies.sec
  signify -V -p ~/.config/runwarden/policies.pub -m strict_play.wasm -x strict_play.wasm.sig";

/// What was signed.
pub(crate) struct Signed {
    file: PathBuf,
    signature: PathBuf,
    key: PublicKey,
}

/// Signs.
pub(crate) fn execute(args: &Args) -> Outcome<Signed> {
    let bytes = read(&args.file)?;
    inspect(&bytes, Limits::DEFAULT)?;
    let text = String::from_utf8(read(&args.key)?).unwrap_or_default();
    let key = SecretKey::from_file(&text).map_err(Error::from)?;
    let signature = args.signature.clone().unwrap_or_else(|| signature_path(&args.file));
    std::fs::write(&signature, key.sign(&bytes).to_file())
        .map_err(|error| Failure::file("write", &signature, &error))?;
    Ok(Signed {
        file: args.file.clone(),
        signature,
        key: key.public(),
    })
}

impl Report for Signed {
    fn json(&self) -> Value {
        json!({
            "file": self.file.to_string_lossy(),
            "signature": self.signature.to_string_lossy(),
            "key_id": self.key.id.to_string(),
            "key": self.key.to_setting(),
        })
    }

    fn text(&self, page: &Page) -> Text {
        let words = format!("is the signature of {} by key {}", self.file.display(), self.key.id);
        let name = Text::styled(Style::Strong, self.signature.to_string_lossy()).and(" ");
        Text::hanging(name, 2, words, page)
    }
}
