//! An incremental parser of server-sent events. Pure.

/// Maximum size of one event; a Leasehold server sends none larger.
const EVENT_MAX_BYTES: usize = 1024 * 1024;

/// A server-sent event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    /// The event's type.
    pub(crate) kind: String,
    /// The event's id: the cursor after it.
    pub(crate) id: Option<String>,
    /// The event's data.
    pub(crate) data: String,
}

/// The parser's state between chunks.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    buffer: Vec<u8>,
    event: Event,
    /// Whether the event has any field.
    begun: bool,
}

/// An event exceeded the maximum size.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl Reader {
    /// Adds bytes and returns the events they complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Event>, TooLong> {
        self.buffer.extend_from_slice(bytes);
        let mut events = Vec::new();
        let mut begin = 0;
        while let Some(length) = self.buffer[begin..].iter().position(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(&self.buffer[begin..begin + length]).into_owned();
            begin += length + 1;
            events.extend(self.line(line.trim_end_matches('\r')));
        }
        self.buffer.drain(..begin);
        if self.buffer.len() + self.event.data.len() > EVENT_MAX_BYTES {
            return Err(TooLong);
        }
        Ok(events)
    }

    fn line(&mut self, line: &str) -> Option<Event> {
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            return std::mem::take(&mut self.begun).then_some(event);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.event.kind),
            "id" => self.event.id = Some(value.to_owned()),
            "data" => {
                if !self.event.data.is_empty() {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            // A comment or an unknown field.
            _ => return None,
        }
        self.begun = true;
        None
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const TEXT: &str = ": hello\n\nevent: request\nid: 7\ndata: {\"a\":\ndata: \"ä\"}\n\nid:8\r\ndata:x\r\n\r\nevent: half\n";

    fn expected() -> Vec<Event> {
        vec![
            Event {
                kind: "request".to_owned(),
                id: Some("7".to_owned()),
                data: "{\"a\":\n\"ä\"}".to_owned(),
            },
            Event {
                kind: String::new(),
                id: Some("8".to_owned()),
                data: "x".to_owned(),
            },
        ]
    }

    #[test]
    fn events_are_parsed_from_chunks_of_any_size() {
        for size in 1..TEXT.len() {
            let mut reader = Reader::default();
            let chunks = TEXT.as_bytes().chunks(size);
            let events: Vec<Event> = chunks
                .flat_map(|chunk| reader.push(chunk).unwrap())
                .collect();
            assert_eq!(events, expected(), "chunks of {size} bytes");
        }
    }

    #[test]
    fn fuzzed_streams_are_parsed_alike_in_chunks_of_any_size() {
        let tokens = [
            "event:", "id: ", "data", ":", "\n", "\r\n", "\n\n", "\0", "\u{e4}",
        ];
        leasehold_testkit::Fuzzer::new(&[TEXT, "data: x\n\n"])
            .tokens(&tokens)
            .run(|input| {
                let events = |size: usize| -> Vec<Event> {
                    let mut reader = Reader::default();
                    let chunks = input.chunks(size);
                    chunks
                        .flat_map(|chunk| reader.push(chunk).unwrap())
                        .collect()
                };
                let whole = events(input.len().max(1));
                for size in [1, 2, 5] {
                    assert_eq!(events(size), whole, "chunks of {size} bytes");
                }
                whole.len()
            });
    }

    #[test]
    fn too_long_event_is_rejected() {
        let mut reader = Reader::default();
        let line = format!("data: {}\n", "x".repeat(1000));
        let rejected = (0..2000).any(|_| reader.push(line.as_bytes()).is_err());
        assert!(rejected);
    }
}
