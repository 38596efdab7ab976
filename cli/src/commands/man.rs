//! `man`: the manual, a page for each command.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::errors::{Failure, Outcome};
use crate::output::{Page, Report, Text};

/// Write the manual, a page for each command, into a directory
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The directory; it is made if it is missing
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden man ~/.local/share/man/man1 && man runwarden-wait";

/// The pages that were written.
pub(crate) struct Written(Vec<PathBuf>);

/// Writes the pages.
pub(crate) fn execute(args: &Args) -> Outcome<Written> {
    let failed = |error: std::io::Error| Failure::file("write the manual to", &args.directory, &error);
    std::fs::create_dir_all(&args.directory).map_err(failed)?;
    let mut command = crate::args::command().disable_help_flag(true);
    command.build();
    let mut files = Vec::new();
    pages(&command, &mut |name, page| {
        let path = args.directory.join(name);
        std::fs::write(&path, page)?;
        files.push(path);
        Ok(())
    })
    .map_err(failed)?;
    Ok(Written(files))
}

/// Gives the name and text of each page.
fn pages(
    command: &clap::Command,
    write: &mut impl FnMut(String, Vec<u8>) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let man = clap_mangen::Man::new(command.clone());
    let mut page = Vec::new();
    man.render(&mut page)?;
    write(man.get_filename(), page)?;
    for member in command.get_subcommands().filter(|member| !member.is_hide_set()) {
        pages(member, write)?;
    }
    Ok(())
}

impl Report for Written {
    fn json(&self) -> Value {
        json!({"files": self.0})
    }

    fn text(&self, _: &Page) -> Text {
        let mut text = Text::new();
        for file in &self.0 {
            text.line(Text::of(file.display().to_string()));
        }
        text
    }
}
