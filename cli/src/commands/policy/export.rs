//! `policy export`: writes a component as an image layout, for registries.

use std::path::{Path, PathBuf};

use runwarden_host::model::RaisedLimits;
use runwarden_host::provenance::{Exported, KeyId, Signature, layout};
use runwarden_host::store::Signed;
use serde_json::{Value, json};

use super::find;
use crate::context::Context;
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;
use crate::output::{Page, Report, Style, Text};

/// Write a component as an OCI image layout
///
/// The directory holds the component and its signatures, as tools that copy to registries take it (`oras cp --from-oci-layout`,
/// `skopeo copy oci:DIR`). `policy install DIR` takes it in again.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A kind, NAME@V, or a digest
    #[arg(value_name = "NAME@V|DIGEST")]
    policy: String,
    /// A directory that is not there yet, or is empty
    directory: PathBuf,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden policy export strict_play@1.2.0 ./strict_play
  oras cp --from-oci-layout ./strict_play:1.2.0 registry.example/policies/strict_play:1.2.0
  runwarden policy install ./strict_play";

/// What was written.
pub(crate) struct Written {
    label: String,
    digest: String,
    directory: PathBuf,
    signatures: usize,
}

/// Writes.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Written> {
    let host = context.read_or_create()?;
    let subject = find::component(&host, &args.policy, &RaisedLimits::default())?;
    let unknown = || Failure::usage(format!("`{}` is not installed", args.policy));
    let bytes = host.store().component_bytes(&subject.digest)?;
    let bytes = bytes.ok_or_else(|| unknown().hint("`runwarden policy install` takes a file in first"))?;
    let all = host.store().signatures()?;
    let its = all.into_iter().filter(|(digest, _)| *digest == subject.digest);
    let signatures: Vec<Signature> = its.map(|(_, signed)| signature(&signed)).collect();
    let exports = subject.exports();
    let files = layout(&Exported {
        bytes: &bytes,
        kind: subject.kind(),
        name: subject.name(),
        version: subject.version(),
        exports: &exports,
        imports: &subject.inspected.imports,
        signatures: &signatures,
    });
    prepare(&args.directory)?;
    for (name, bytes) in files {
        write(&args.directory.join(name), &bytes)?;
    }
    Ok(Written {
        label: format!("{}@{}", subject.name(), subject.version()),
        digest: subject.digest,
        directory: args.directory.clone(),
        signatures: signatures.len(),
    })
}

fn signature(signed: &Signed) -> Signature {
    Signature {
        key: KeyId(signed.key_id),
        bytes: signed.signature,
    }
}

/// Makes the directory; one that holds anything is refused: what is there is not ours.
fn prepare(directory: &Path) -> Outcome<()> {
    let told = |error: std::io::Error| Failure::file("write", directory, &error);
    std::fs::create_dir_all(directory).map_err(told)?;
    if std::fs::read_dir(directory).map_err(told)?.next().is_some() {
        let message = format!("{} is not empty", directory.display());
        let failure = Failure::new(Exit::CONFLICT, "exists", message);
        return Err(failure.hint("choose a directory that is not there yet"));
    }
    std::fs::create_dir_all(directory.join("blobs/sha256")).map_err(told)
}

fn write(path: &Path, bytes: &[u8]) -> Outcome<()> {
    std::fs::write(path, bytes).map_err(|error| Failure::file("write", path, &error))
}

impl Report for Written {
    fn json(&self) -> Value {
        json!({
            "directory": self.directory.to_string_lossy(),
            "digest": self.digest,
            "signatures": self.signatures,
        })
    }

    fn text(&self, page: &Page) -> Text {
        let signatures = match self.signatures {
            0 => "without a signature".to_owned(),
            1 => "with its signature".to_owned(),
            many => format!("with its {many} signatures"),
        };
        let words = format!("is in {}, {signatures}", self.directory.display());
        Text::hanging(Text::styled(Style::Strong, &self.label).and(" "), 2, words, page)
    }
}
