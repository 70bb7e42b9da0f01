//! Bulk commands: reads files of JSON lines in batches and shows a progress bar. Knows no resource type.

use crate::exit::Failure;
use crate::input;
use crate::listing::note;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal};
use std::path::Path;

/// A batch ends at this many lines or `BATCH_BYTES`, whichever comes first. The server applies a batch completely or not at all.
const BATCH: usize = 1_000;
const BATCH_BYTES: usize = 4 * 1024 * 1024;

/// A file of JSON lines.
pub(crate) struct JsonLines {
    source: String,
    from: Box<dyn BufRead>,
    bytes: Option<u64>,
}

/// Lines that are sent in one call.
pub(crate) struct Batch {
    source: String,
    lines: Vec<(u64, String)>,
    pub(crate) bytes: u64,
}

impl JsonLines {
    pub(crate) fn open(file: &Path) -> Result<Self, Failure> {
        let source = input::display_name(file);
        if file == Path::new("-") {
            return Ok(Self {
                source,
                from: Box::new(io::stdin().lock()),
                bytes: None,
            });
        }
        let open = File::open(file).and_then(|open| {
            let bytes = open.metadata()?.len();
            Ok((open, bytes))
        });
        let (open, bytes) =
            open.map_err(|error| Failure::usage(format!("cannot read {source}: {error}")))?;
        Ok(Self {
            source,
            from: Box::new(BufReader::new(open)),
            bytes: Some(bytes),
        })
    }

    /// Size of the file in bytes; `None` for standard input.
    pub(crate) fn bytes(&self) -> Option<u64> {
        self.bytes
    }

    /// Iterates over all lines in batches; skips empty lines.
    pub(crate) fn batches(mut self) -> impl Iterator<Item = Result<Batch, Failure>> {
        let mut number = 0;
        std::iter::from_fn(move || {
            loop {
                match self.batch(&mut number) {
                    Ok(batch) if batch.bytes == 0 => return None,
                    Ok(batch) if batch.lines.is_empty() => {}
                    other => return Some(other),
                }
            }
        })
    }

    fn batch(&mut self, number: &mut u64) -> Result<Batch, Failure> {
        let mut batch = Batch {
            source: self.source.clone(),
            lines: Vec::new(),
            bytes: 0,
        };
        while batch.lines.len() < BATCH && batch.bytes < BATCH_BYTES as u64 {
            let mut line = String::new();
            let read = self.from.read_line(&mut line);
            *number += 1;
            let read = read.map_err(|error| {
                Failure::usage(format!("cannot read {}:{number}: {error}", self.source))
            })?;
            if read == 0 {
                break;
            }
            batch.bytes += read as u64;
            if !line.trim().is_empty() {
                batch.lines.push((*number, line));
            }
        }
        Ok(batch)
    }
}

impl Batch {
    /// Parses the lines.
    pub(crate) fn read<L: DeserializeOwned, T>(
        &self,
        make: impl Fn(L) -> T,
    ) -> Result<Vec<T>, Failure> {
        let lines = self.lines.iter();
        lines
            .map(|(number, line)| {
                let source = format!("{}:{number}", self.source);
                Ok(make(input::json(line.trim_end(), &source)?))
            })
            .collect()
    }
}

/// Progress of a bulk command.
pub(crate) struct BulkProgress {
    bar: ProgressBar,
    done: u64,
    word: &'static str,
}

impl BulkProgress {
    /// `word` is the participle shown after the count; `total` is in the unit of `step`'s `progress`.
    pub(crate) fn new(word: &'static str, total: Option<u64>) -> Self {
        let target = if io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(total, target);
        let template = match total {
            Some(_) => "{bar:40} {percent}%  {msg}  {eta} left",
            None => "{spinner} {msg}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { bar, done: 0, word }
    }

    /// Adds `done` items.
    pub(crate) fn step(&mut self, done: usize, progress: u64) {
        self.done += done as u64;
        self.bar.inc(progress);
        self.bar.set_message(format!("{} {}", self.done, self.word));
    }

    pub(crate) fn done(&self) -> u64 {
        self.done
    }

    /// Adds the number of items already processed to the message of a failure.
    pub(crate) fn with_progress<T>(&self, step: Result<T, Failure>) -> Result<T, Failure> {
        step.map_err(|mut failure| {
            self.bar.finish_and_clear();
            if self.done > 0 {
                let (done, word) = (self.done, self.word);
                failure.message = format!("{}; {done} {word} before the failure", failure.message);
            }
            failure
        })
    }

    /// Clears the bar and prints the total.
    pub(crate) fn end(self) {
        self.bar.finish_and_clear();
        note(&format!("{} {}", self.done, self.word));
    }
}
