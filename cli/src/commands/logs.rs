//! `logs`: what a run wrote, byte for byte, in order of arrival.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;

use runwarden_host::model::{Bytes, Entity, Timestamp};
use runwarden_host::process::{Fate, RunDir, Segment, Stream, dropped};
use runwarden_host::store::Scope;
use runwarden_host::verbs::standing;
use runwarden_host::{Host, Watch};
use serde_json::json;

use crate::context::{Context, meant};
use crate::errors::{Failure, Outcome};
use crate::exit::Exit;
use crate::output::{Form, Style, Text, compact};

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
    let host = context.read()?;
    let entity = run_of(&host, meant(&host, &args.reference)?)?;
    let runtimes = host.store().runtimes(Some(std::slice::from_ref(&entity.reference)))?;
    if runtimes.iter().all(|runtime| runtime.run_dir.is_none()) {
        let reference = &entity.reference;
        return Err(match host.store().work(&entity)? {
            None => Failure::new(
                Exit::UNKNOWN,
                "no_logs",
                format!("{reference} has no logs: it was not run"),
            )
            .hint("`runwarden ls run` shows what was"),
            Some(_) => Failure::new(
                Exit::UNKNOWN,
                "no_logs",
                format!("the logs of {reference} were removed"),
            )
            .hint(format!(
                "`runwarden history {reference} --admin` says when, and by whom"
            )),
        });
    }
    let directory = RunDir::at(host.run_dir(&entity.reference.id));
    let mut printer = Printer {
        context,
        args,
        printed: [0; 3],
        lines: Default::default(),
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
    match followed.and_then(|()| printer.print_rest()) {
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
            entity = standing(host, found).map_err(std::io::Error::other)?.into_entity();
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

/// Read and printed at a time.
const CHUNK_BYTES: usize = 64 << 10;

/// Prints segments of the logs, each byte once.
struct Printer<'a> {
    context: &'a Context,
    args: &'a Args,
    /// How much of each stream is printed.
    printed: [u64; 3],
    /// With `--json`: what of each stream's last line has arrived.
    lines: [Line; 3],
}

/// A line that is not whole yet.
#[derive(Default)]
struct Line {
    at_ms: Option<u64>,
    bytes: Vec<u8>,
}

impl Printer<'_> {
    fn wants(&self, segment: &Segment) -> bool {
        match segment.stream {
            Stream::Output => true,
            Stream::Stdout => !self.args.stderr,
            Stream::Stderr => !self.args.stdout,
        }
    }

    fn wanted(&self, directory: &RunDir) -> std::io::Result<Vec<Segment>> {
        let mut segments = directory.segments().map_err(std::io::Error::other)?;
        segments.retain(|segment| self.wants(segment));
        Ok(segments)
    }

    fn new_bytes(&mut self, directory: &RunDir) -> std::io::Result<()> {
        let segments = self.wanted(directory)?;
        for segment in &segments {
            let from = segment.bytes.start.max(self.printed[segment.stream as usize]);
            if from < segment.bytes.end {
                self.print(directory, segment, from)?;
            }
        }
        self.count_as_printed(&segments);
        Ok(())
    }

    /// The last lines of all that is there: those that began last, whole, though they may have arrived in parts.
    fn tail(&mut self, directory: &RunDir, lines: usize) -> std::io::Result<()> {
        let segments = self.wanted(directory)?;
        let mut left = lines;
        let mut begins = [u64::MAX; 3];
        for segment in segments.iter().rev() {
            if left == 0 {
                break;
            }
            if segment.fate == Fate::Dropped {
                // What is left of a line counts as one.
                let begin = &mut begins[segment.stream as usize];
                *begin = segment.bytes.end.min(*begin);
                break;
            }
            if let Some((from, found)) = last_lines(directory, segment, left)? {
                begins[segment.stream as usize] = from;
                left -= found;
            }
        }
        for segment in &segments {
            let from = begins[segment.stream as usize].max(segment.bytes.start);
            if from < segment.bytes.end {
                self.print(directory, segment, from)?;
            }
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

    fn print(&mut self, directory: &RunDir, segment: &Segment, from: u64) -> std::io::Result<()> {
        let end = segment.bytes.end;
        if segment.fate == Fate::Dropped {
            return self.print_mark(segment.stream, end - from);
        }
        let log = File::open(directory.log(segment.stream))?;
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut offset = from;
        while offset < end {
            let wanted = chunk.len().min(usize::try_from(end - offset).unwrap_or(usize::MAX));
            let length = log.read_at(&mut chunk[..wanted], offset)?;
            let next = offset + u64::try_from(length).unwrap_or(0);
            // Looked at after reading: what was dropped in between reads as NUL.
            let hole = dropped(&log).filter(|hole| hole.start < next && offset < hole.end);
            match hole {
                _ if length == 0 => break,
                None => {
                    self.print_bytes(segment, &chunk[..length])?;
                    offset = next;
                }
                Some(hole) => {
                    let resumes = hole.end.min(end);
                    self.print_mark(segment.stream, resumes - offset)?;
                    offset = resumes;
                }
            }
        }
        std::io::stdout().lock().flush()
    }

    fn print_bytes(&mut self, segment: &Segment, bytes: &[u8]) -> std::io::Result<()> {
        if self.context.output.form() == Form::Json {
            return self.print_json(segment, bytes);
        }
        match segment.stream {
            Stream::Output | Stream::Stdout => std::io::stdout().lock().write_all(bytes),
            Stream::Stderr => std::io::stderr().lock().write_all(bytes),
        }
    }

    /// Says that bytes are missing here, beside what the program wrote: never among it.
    fn print_mark(&mut self, stream: Stream, bytes: u64) -> std::io::Result<()> {
        if self.context.output.form() == Form::Json {
            if !self.lines[stream as usize].bytes.is_empty() {
                self.print_line(stream)?;
            }
            let document = json!({"at": null, "stream": word(stream), "dropped_bytes": bytes});
            return self
                .context
                .output
                .bytes(format!("{}\n", compact(&document)).as_bytes());
        }
        std::io::stdout().lock().flush()?;
        let said = format!(
            "[{bytes} bytes of {} were dropped here, to stay within the log limit]",
            word(stream)
        );
        self.context.output.note(&Text::styled(Style::Dim, said));
        Ok(())
    }

    /// A document for each line, as soon as it is whole: base64 where it is not UTF-8.
    fn print_json(&mut self, segment: &Segment, mut part: impl std::io::BufRead) -> std::io::Result<()> {
        loop {
            let line = &mut self.lines[segment.stream as usize];
            if line.bytes.is_empty() {
                line.at_ms = segment.at_ms;
            }
            part.read_until(b'\n', &mut line.bytes)?;
            if !line.bytes.ends_with(b"\n") {
                return Ok(());
            }
            self.print_line(segment.stream)?;
        }
    }

    /// Prints what is left of lines that were never finished.
    fn print_rest(&mut self) -> std::io::Result<()> {
        for stream in [Stream::Output, Stream::Stdout, Stream::Stderr] {
            if !self.lines[stream as usize].bytes.is_empty() {
                self.print_line(stream)?;
            }
        }
        Ok(())
    }

    fn print_line(&mut self, stream: Stream) -> std::io::Result<()> {
        let line = std::mem::take(&mut self.lines[stream as usize]);
        let ms = line.at_ms.and_then(|ms| i64::try_from(ms).ok());
        let at = ms.map(|ms| Timestamp::from_ms(ms).to_rfc3339());
        let document = json!({"at": at, "stream": word(stream), "line": Bytes(line.bytes)});
        self.context
            .output
            .bytes(format!("{}\n", compact(&document)).as_bytes())
    }
}

fn word(stream: Stream) -> &'static str {
    match stream {
        Stream::Output => "output",
        Stream::Stdout => "stdout",
        Stream::Stderr => "stderr",
    }
}

/// Where the earliest of the last lines that begin in a segment begins, and how many they are, at most `wanted`.
fn last_lines(directory: &RunDir, segment: &Segment, wanted: usize) -> std::io::Result<Option<(u64, usize)>> {
    let mut log = File::open(directory.log(segment.stream))?;
    // A line begins after a newline; whether one begins with the segment is told by the byte before it.
    let first = segment.bytes.start.saturating_sub(1);
    let (mut end, mut earliest) = (segment.bytes.end.saturating_sub(1), None);
    let mut found = 0;
    let mut chunk = Vec::new();
    while end > first {
        let from = end.saturating_sub(CHUNK_BYTES as u64).max(first);
        log.seek(SeekFrom::Start(from))?;
        chunk.clear();
        (&mut log).take(end - from).read_to_end(&mut chunk)?;
        for (index, _) in chunk.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n') {
            found += 1;
            earliest = Some((from + u64::try_from(index).unwrap_or(0) + 1, found));
            if found == wanted {
                return Ok(earliest);
            }
        }
        end = from;
    }
    Ok(if segment.bytes.start == 0 {
        Some((0, found + 1))
    } else {
        earliest
    })
}

/// What queued work wrote is what the run of its last attempt wrote.
fn run_of(host: &Host, entity: Entity) -> Outcome<Entity> {
    if entity.queued.is_none() {
        return Ok(entity);
    }
    match host.store().linked(&entity, Scope::Children)?.pop() {
        Some(run) => Ok(run),
        None => {
            let reference = &entity.reference;
            let said = format!("{reference} has no logs: no attempt was made yet");
            let failure = Failure::new(Exit::UNKNOWN, "no_logs", said);
            Err(failure.hint(format!("`runwarden why {reference}` says what it waits for")))
        }
    }
}
