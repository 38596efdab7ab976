//! `logs`: what a run wrote, byte for byte, in order of arrival.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};

use runwarden_host::model::{Bytes, Entity, Timestamp};
use runwarden_host::process::{RunDir, Segment, Stream};
use runwarden_host::verbs::settle;
use runwarden_host::{Host, Watch};
use serde_json::json;

use crate::context::{Context, meant};
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;
use crate::output::{Form, compact};

/// Print what a run wrote, as it wrote it
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The run [default: the newest one]
    #[arg(value_name = "REF", default_value = "@", hide_default_value = true)]
    reference: String,
    /// Go on until it has ended
    #[arg(short, long)]
    follow: bool,
    /// Only what it wrote to standard output
    #[arg(long, conflicts_with = "stderr")]
    stdout: bool,
    /// Only what it wrote to standard error
    #[arg(long)]
    stderr: bool,
    /// Only the last lines
    #[arg(long, value_name = "N")]
    tail: Option<usize>,
}

const EXAMPLES: &str = "EXAMPLES
  runwarden logs
  runwarden logs -f nightly
  runwarden logs @failed --tail 20
  runwarden logs run/7kq2 --stderr --json

What it wrote to standard output goes to standard output, what it wrote to standard error to standard error.";

/// Prints the logs.
pub(crate) fn execute(context: &Context, args: &Args) -> Outcome<Exit> {
    let host = context.open()?;
    let entity = meant(&host, &args.reference)?;
    let runtimes = host.store().runtimes(Some(std::slice::from_ref(&entity.reference)))?;
    if runtimes.iter().all(|runtime| runtime.run_dir.is_none()) {
        let said = format!("{} has no logs: it was not run", entity.reference);
        return Err(Failure::new(Exit::UNKNOWN, "no_logs", said).hint("`runwarden ls run` shows what was"));
    }
    let directory = RunDir::at(host.run_dir(&entity.reference.id));
    let mut printer = Printer {
        context,
        args,
        printed: [0; 3],
    };
    let written = match args.tail {
        Some(lines) => printer.tail(&directory, lines),
        None => printer.new_bytes(&directory),
    };
    let followed = written.and_then(|()| {
        if args.follow {
            follow(&host, entity, &directory, &mut printer)
        } else {
            Ok(())
        }
    });
    match followed {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::file("read the logs in", directory.path(), &error))
        }
        Ok(()) | Err(_) => Ok(Exit::DONE),
    }
}

/// Prints what is new until the run has ended and nothing of it lives.
fn follow(host: &Host, mut entity: Entity, directory: &RunDir, printer: &mut Printer<'_>) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let watch = Watch::directory(directory.path());
    loop {
        // Looked at first: whatever was written before the end is printed after it is seen.
        if let Some(found) = host.store().load(&entity.reference.id).map_err(std::io::Error::other)? {
            entity = settle(host, found).map_err(std::io::Error::other)?;
        }
        let runtimes = host.store().runtimes(Some(std::slice::from_ref(&entity.reference)));
        let alive = runtimes
            .map_err(std::io::Error::other)?
            .iter()
            .any(|runtime| !runtime.is_stopped());
        printer.new_bytes(directory)?;
        if entity.terminal && !alive {
            return Ok(());
        }
        runtime.block_on(watch.changed());
    }
}

/// Prints segments of the logs, each byte once.
struct Printer<'a> {
    context: &'a Context,
    args: &'a Args,
    /// How much of each stream is printed.
    printed: [u64; 3],
}

impl Printer<'_> {
    fn wants(&self, segment: &Segment) -> bool {
        match segment.stream {
            Stream::Output => true,
            Stream::Stdout => !self.args.stderr,
            Stream::Stderr => !self.args.stdout,
        }
    }

    fn new_bytes(&mut self, directory: &RunDir) -> std::io::Result<()> {
        let segments = directory.segments().map_err(std::io::Error::other)?;
        for segment in segments.iter().filter(|segment| self.wants(segment)) {
            let from = segment.bytes.start.max(self.printed[segment.stream as usize]);
            if from < segment.bytes.end {
                self.print(directory, segment, from)?;
            }
        }
        self.count_as_printed(&segments);
        Ok(())
    }

    /// The last lines of all that is there, in order of arrival.
    fn tail(&mut self, directory: &RunDir, lines: usize) -> std::io::Result<()> {
        let segments = directory.segments().map_err(std::io::Error::other)?;
        let mut left = lines;
        let mut chosen: Vec<(&Segment, u64)> = Vec::new();
        for segment in segments.iter().rev().filter(|segment| self.wants(segment)) {
            if left == 0 {
                break;
            }
            let (from, found) = last_lines(directory, segment, left)?;
            chosen.push((segment, from));
            left = left.saturating_sub(found);
        }
        for (segment, from) in chosen.into_iter().rev() {
            self.print(directory, segment, from)?;
        }
        self.count_as_printed(&segments);
        Ok(())
    }

    fn count_as_printed(&mut self, segments: &[Segment]) {
        for segment in segments {
            let printed = &mut self.printed[segment.stream as usize];
            *printed = segment.bytes.end.max(*printed);
        }
    }

    fn print(&self, directory: &RunDir, segment: &Segment, from: u64) -> std::io::Result<()> {
        let mut log = File::open(directory.log(segment.stream))?;
        log.seek(SeekFrom::Start(from))?;
        let mut part = log.take(segment.bytes.end - from);
        if self.context.output.form() == Form::Json {
            return self.print_json(segment, BufReader::new(part));
        }
        match segment.stream {
            Stream::Output | Stream::Stdout => std::io::copy(&mut part, &mut std::io::stdout().lock())?,
            Stream::Stderr => std::io::copy(&mut part, &mut std::io::stderr().lock())?,
        };
        std::io::stdout().lock().flush()
    }

    /// A document for each line: base64 where it is not UTF-8.
    fn print_json(&self, segment: &Segment, mut part: impl std::io::BufRead) -> std::io::Result<()> {
        let stream = match segment.stream {
            Stream::Output => "output",
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        };
        let at = segment
            .at_ms
            .and_then(|ms| i64::try_from(ms).ok())
            .map(|ms| Timestamp::from_ms(ms).to_rfc3339());
        let mut line = Vec::new();
        while part.read_until(b'\n', &mut line)? > 0 {
            let document = json!({"at": at, "stream": stream, "line": Bytes(std::mem::take(&mut line))});
            self.context
                .output
                .bytes(format!("{}\n", compact(&document)).as_bytes())?;
        }
        Ok(())
    }
}

/// Where the last lines of a segment begin, and how many there are, at most `wanted`.
fn last_lines(directory: &RunDir, segment: &Segment, wanted: usize) -> std::io::Result<(u64, usize)> {
    const CHUNK_BYTES: u64 = 64 << 10;
    let mut log = File::open(directory.log(segment.stream))?;
    let (mut end, mut found) = (segment.bytes.end, 0);
    let mut chunk = Vec::new();
    while end > segment.bytes.start {
        let from = end.saturating_sub(CHUNK_BYTES).max(segment.bytes.start);
        log.seek(SeekFrom::Start(from))?;
        chunk.clear();
        (&mut log).take(end - from).read_to_end(&mut chunk)?;
        for (index, _) in chunk.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n') {
            let after = from + u64::try_from(index).unwrap_or(0) + 1;
            // The newline that ends the segment ends its last line; every other one begins a line.
            if after == segment.bytes.end {
                continue;
            }
            found += 1;
            if found == wanted {
                return Ok((after, found));
            }
        }
        end = from;
    }
    Ok((segment.bytes.start, found + 1))
}
