//! Finds the lines of HTTP/1 messages in a stream of bytes, and those that end with a bare LF. Does no IO, and does not interpret the lines.

/// The first line of an HTTP/2 connection, and the empty line after it. No HTTP/1 request begins so.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\n";
/// Bytes of the line end after the data of a chunk.
const CHUNK_END: u64 = 2;

/// How the body of a message is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// This many bytes.
    Length(u64),
    /// Chunks.
    Chunked,
}

/// The result of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scan {
    /// The bytes before the stop; all of them if there is none.
    pub(crate) passed: usize,
    /// Why the scan stopped.
    pub(crate) stop: Option<Stop>,
}

/// Why a scan stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// A head ends here. What follows depends on how its body is framed.
    HeadEnd,
    /// The next byte is a bare LF, in a head or in the trailers of a body.
    BareLf,
    /// The next byte is a bare LF, in the line with a chunk's size.
    BareLfInChunkSize,
}

/// Scans the bytes of a connection in the order of their arrival, in pieces of any size.
#[derive(Debug)]
pub(crate) struct LineScanner(Phase);

#[derive(Debug)]
enum Phase {
    /// The connection begins with this many bytes of [`HTTP2_PREFACE`].
    Preface(usize),
    Head(HeadLines),
    /// A head has ended; how its body is framed is not known yet.
    HeadEnded,
    Body(u64),
    ChunkSize(ChunkSize),
    /// Bytes that are left of a chunk's data and its line end.
    ChunkData(u64),
    Trailers(Line),
    Http2,
    /// After a bare LF.
    Refused,
}

/// A line whose end has not been found.
#[derive(Debug, Default)]
struct Line {
    length: usize,
    ends_with_cr: bool,
}

/// The end of a line.
enum LineEnd {
    /// Not among the bytes.
    None,
    /// CRLF; the next line begins at this position.
    CrLf { next: usize, is_empty: bool },
    /// LF alone, at this position.
    BareLf(usize),
}

impl Line {
    /// Continues the line with these bytes, up to its end. After that, this is the next line.
    fn scan(&mut self, bytes: &[u8]) -> LineEnd {
        let Some(lf) = bytes.iter().position(|byte| *byte == b'\n') else {
            self.length = self.length.saturating_add(bytes.len());
            self.ends_with_cr = match bytes.last() {
                Some(last) => *last == b'\r',
                None => self.ends_with_cr,
            };
            return LineEnd::None;
        };
        let has_cr = match lf.checked_sub(1) {
            Some(before) => bytes[before] == b'\r',
            None => self.ends_with_cr,
        };
        let is_empty = self.length.saturating_add(lf) == 1;
        *self = Self::default();
        match has_cr {
            true => LineEnd::CrLf {
                next: lf + 1,
                is_empty,
            },
            false => LineEnd::BareLf(lf),
        }
    }
}

/// The lines of a head.
#[derive(Debug, Default)]
struct HeadLines {
    line: Line,
    /// Whether a line was not empty. Empty lines before the first line are ignored.
    has_begun: bool,
}

impl HeadLines {
    /// The lines of a head that begins with this part of [`HTTP2_PREFACE`].
    fn after(mut bytes: &[u8]) -> Self {
        let mut head = Self::default();
        while let LineEnd::CrLf { next, .. } = head.line.scan(bytes) {
            head.has_begun = true;
            bytes = &bytes[next..];
        }
        head
    }
}

/// The line with the size of a chunk.
#[derive(Debug, Default)]
struct ChunkSize {
    line: Line,
    size: u64,
    has_ended: bool,
}

impl ChunkSize {
    /// Adds the hexadecimal digits at the beginning of the line; these bytes are its next part.
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match char::from(*byte).to_digit(16) {
                Some(digit) if !self.has_ended => {
                    self.size = self.size.saturating_mul(16).saturating_add(digit.into());
                }
                _ => self.has_ended = true,
            }
        }
    }

    /// Returns what follows the line.
    fn next(&self) -> Phase {
        match self.size {
            0 => Phase::Trailers(Line::default()),
            size => Phase::ChunkData(size.saturating_add(CHUNK_END)),
        }
    }
}

impl LineScanner {
    pub(crate) fn new() -> Self {
        Self(Phase::Preface(0))
    }

    /// Whether a head has ended whose body's framing is not known: [`head_parsed`](Self::head_parsed) comes next.
    pub(crate) fn is_at_head_end(&self) -> bool {
        matches!(self.0, Phase::HeadEnded)
    }

    /// Whether a bare LF was found.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self.0, Phase::Refused)
    }

    /// Says how the body after the head is framed.
    pub(crate) fn head_parsed(&mut self, framing: Framing) {
        self.0 = match framing {
            Framing::Length(0) => Phase::Head(HeadLines::default()),
            Framing::Length(length) => Phase::Body(length),
            Framing::Chunked => Phase::ChunkSize(ChunkSize::default()),
        };
    }

    /// Scans the next bytes of the connection, up to the end of a head or a bare LF.
    pub(crate) fn scan(&mut self, bytes: &[u8]) -> Scan {
        let mut passed = 0;
        while passed < bytes.len() {
            let step = self.step(&bytes[passed..]);
            passed += step.passed;
            if step.stop.is_some() {
                let stop = step.stop;
                return Scan { passed, stop };
            }
        }
        Scan { passed, stop: None }
    }

    /// Scans the next bytes, at most to the end of a line.
    fn step(&mut self, bytes: &[u8]) -> Scan {
        match &mut self.0 {
            Phase::Preface(known) => {
                let expected = HTTP2_PREFACE[*known..].iter();
                let same = bytes.iter().zip(expected).take_while(|(is, one)| is == one);
                let same = same.count();
                *known += same;
                if *known == HTTP2_PREFACE.len() {
                    self.0 = Phase::Http2;
                } else if same < bytes.len() {
                    self.0 = Phase::Head(HeadLines::after(&HTTP2_PREFACE[..*known]));
                }
                pass(same)
            }
            Phase::Head(head) => match head.line.scan(bytes) {
                LineEnd::None => pass(bytes.len()),
                LineEnd::BareLf(lf) => self.refuse(lf, Stop::BareLf),
                LineEnd::CrLf { next, is_empty } if is_empty && head.has_begun => {
                    self.0 = Phase::HeadEnded;
                    stop(next, Stop::HeadEnd)
                }
                LineEnd::CrLf { next, is_empty } => {
                    head.has_begun |= !is_empty;
                    pass(next)
                }
            },
            Phase::HeadEnded => stop(0, Stop::HeadEnd),
            Phase::Body(left) => {
                let read = skip(left, bytes);
                if *left == 0 {
                    self.0 = Phase::Head(HeadLines::default());
                }
                pass(read)
            }
            Phase::ChunkSize(_) | Phase::ChunkData(_) | Phase::Trailers(_) => self.chunk(bytes),
            Phase::Http2 => pass(bytes.len()),
            Phase::Refused => stop(0, Stop::BareLf),
        }
    }

    /// Scans the next bytes of a chunked body.
    fn chunk(&mut self, bytes: &[u8]) -> Scan {
        match &mut self.0 {
            Phase::ChunkSize(size) => match size.line.scan(bytes) {
                LineEnd::None => {
                    size.add(bytes);
                    pass(bytes.len())
                }
                LineEnd::BareLf(lf) => self.refuse(lf, Stop::BareLfInChunkSize),
                LineEnd::CrLf { next, .. } => {
                    size.add(&bytes[..next]);
                    self.0 = size.next();
                    pass(next)
                }
            },
            Phase::ChunkData(left) => {
                let read = skip(left, bytes);
                if *left == 0 {
                    self.0 = Phase::ChunkSize(ChunkSize::default());
                }
                pass(read)
            }
            Phase::Trailers(line) => match line.scan(bytes) {
                LineEnd::None => pass(bytes.len()),
                LineEnd::BareLf(lf) => self.refuse(lf, Stop::BareLf),
                LineEnd::CrLf { next, is_empty } => {
                    if is_empty {
                        self.0 = Phase::Head(HeadLines::default());
                    }
                    pass(next)
                }
            },
            Phase::Preface(_)
            | Phase::Head(_)
            | Phase::HeadEnded
            | Phase::Body(_)
            | Phase::Http2
            | Phase::Refused => pass(bytes.len()),
        }
    }

    fn refuse(&mut self, passed: usize, why: Stop) -> Scan {
        self.0 = Phase::Refused;
        stop(passed, why)
    }
}

fn pass(passed: usize) -> Scan {
    Scan { passed, stop: None }
}

fn stop(passed: usize, why: Stop) -> Scan {
    let stop = Some(why);
    Scan { passed, stop }
}

/// Takes as many of the bytes as are left, and returns their number.
fn skip(left: &mut u64, bytes: &[u8]) -> usize {
    let read = usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
    *left -= read as u64;
    read
}

#[cfg(test)]
mod tests;
