//! Bulk work: files of JSON lines in batches, and a bar that shows how far it is. Knows no noun.

use crate::exit::Failure;
use crate::input;
use crate::listing::note;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal};
use std::path::Path;

/// As many in a call, and as many bytes, whichever comes first: a batch is carried out whole or not at all.
const BATCH: usize = 1_000;
const BATCH_BYTES: usize = 4 * 1024 * 1024;

/// A file of JSON lines.
pub(crate) struct Lines {
    place: String,
    from: Box<dyn BufRead>,
    bytes: Option<u64>,
}

/// Some lines that are sent together.
pub(crate) struct Batch {
    place: String,
    lines: Vec<(u64, String)>,
    pub(crate) bytes: u64,
}

impl Lines {
    pub(crate) fn open(file: &Path) -> Result<Self, Failure> {
        let place = input::named(file);
        if file == Path::new("-") {
            return Ok(Self {
                place,
                from: Box::new(io::stdin().lock()),
                bytes: None,
            });
        }
        let open = File::open(file).and_then(|open| {
            let bytes = open.metadata()?.len();
            Ok((open, bytes))
        });
        let (open, bytes) =
            open.map_err(|error| Failure::usage(format!("{place} cannot be read: {error}")))?;
        Ok(Self {
            place,
            from: Box::new(BufReader::new(open)),
            bytes: Some(bytes),
        })
    }

    /// How many there are in all, if that is known.
    pub(crate) fn bytes(&self) -> Option<u64> {
        self.bytes
    }

    /// All of them, some at a time; empty lines are left out.
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
            place: self.place.clone(),
            lines: Vec::new(),
            bytes: 0,
        };
        while batch.lines.len() < BATCH && batch.bytes < BATCH_BYTES as u64 {
            let mut line = String::new();
            let read = self.from.read_line(&mut line);
            *number += 1;
            let read = read.map_err(|error| {
                Failure::usage(format!("{}:{number} cannot be read: {error}", self.place))
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
    /// What the lines say.
    pub(crate) fn read<L: DeserializeOwned, T>(
        &self,
        make: impl Fn(L) -> T,
    ) -> Result<Vec<T>, Failure> {
        let lines = self.lines.iter();
        lines
            .map(|(number, line)| {
                let place = format!("{}:{number}", self.place);
                Ok(make(input::json(line.trim_end(), &place)?))
            })
            .collect()
    }
}

/// How far it is.
pub(crate) struct Bulk {
    bar: ProgressBar,
    done: u64,
    word: &'static str,
}

impl Bulk {
    /// `word` says what happens to each; `whole` is how much there is, in the unit of `step`.
    pub(crate) fn new(word: &'static str, whole: Option<u64>) -> Self {
        let target = if io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(whole, target);
        let template = match whole {
            Some(_) => "{bar:40} {percent}%  {msg}  {eta} left",
            None => "{spinner} {msg}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { bar, done: 0, word }
    }

    /// So many more are done.
    pub(crate) fn step(&mut self, done: usize, of_whole: u64) {
        self.done += done as u64;
        self.bar.inc(of_whole);
        self.bar.set_message(format!("{} {}", self.done, self.word));
    }

    pub(crate) fn done(&self) -> u64 {
        self.done
    }

    /// A failure in the middle says how far it came.
    pub(crate) fn stopped<T>(&self, step: Result<T, Failure>) -> Result<T, Failure> {
        step.map_err(|mut failure| {
            self.bar.finish_and_clear();
            if self.done > 0 {
                let (done, word) = (self.done, self.word);
                failure.message = format!("{}; {done} were {word} before", failure.message);
            }
            failure
        })
    }

    /// All is done.
    pub(crate) fn end(self) {
        self.bar.finish_and_clear();
        note(&format!("{} {}", self.done, self.word));
    }
}
