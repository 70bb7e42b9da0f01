//! A position in the change stream and its binary form, the cursor. Accepts only cursors that it would write. Knows no SQL.

use crate::snapshot::Snapshot;
use crate::varint;
use leasehold_store::EpochId;
use leasehold_store::change::ChangeCursor;
use uuid::Uuid;

/// The reader is between two snapshots: it reads events that `until` sees and `from` does not. Without `from` it reads the history,
/// request by request; otherwise events in the order they were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StreamPosition {
    /// Transaction numbers are valid only within one epoch.
    pub(crate) epoch: EpochId,
    pub(crate) from: Option<Snapshot>,
    pub(crate) until: Snapshot,
    /// The request of the last event in the history; nil otherwise.
    pub(crate) request: Uuid,
    pub(crate) event: i64,
}

/// The first byte of a cursor: what follows.
const HISTORY: u8 = 0;
const BETWEEN: u8 = 1;
/// Both snapshots are the same.
const AT: u8 = 2;

impl StreamPosition {
    /// Returns the position before all events between two snapshots.
    pub(crate) fn at(epoch: EpochId, from: Option<Snapshot>, until: Snapshot) -> Self {
        Self {
            epoch,
            from,
            until,
            request: Uuid::nil(),
            event: 0,
        }
    }

    /// Returns the position after this event.
    pub(crate) fn after(&self, request: Uuid, event: i64) -> Self {
        let request = match self.from {
            None => request,
            Some(_) => Uuid::nil(),
        };
        Self {
            request,
            event,
            ..self.clone()
        }
    }

    /// The snapshot from which the reader goes on after what it has read or is reading in one piece.
    pub(crate) fn seen(&self) -> &Snapshot {
        self.from.as_ref().unwrap_or(&self.until)
    }

    /// Returns the same position in a later epoch, whose transactions begin at `start`; none if it has seen one that has such a number.
    pub(crate) fn continued_in(self, epoch: EpochId, start: u64) -> Option<Self> {
        let from = match self.from {
            None => None,
            Some(from) => Some(from.without(start)?),
        };
        Some(Self {
            epoch,
            from,
            until: self.until.without(start)?,
            ..self
        })
    }

    /// Whether no event can be between the two snapshots.
    pub(crate) fn is_empty(&self) -> bool {
        self.from.as_ref() == Some(&self.until)
    }

    pub(crate) fn parse(cursor: &ChangeCursor) -> Option<Self> {
        let mut bytes = cursor.0.as_slice();
        let kind = *bytes.split_off_first()?;
        let epoch = EpochId(i64::from_be_bytes(bytes.split_off(..8)?.try_into().ok()?));
        let event = i64::try_from(varint::read(&mut bytes)?).ok()?;
        let until = Snapshot::read(&mut bytes)?;
        let (mut from, mut request) = (None, Uuid::nil());
        match kind {
            HISTORY => request = Uuid::from_bytes(bytes.split_off(..16)?.try_into().ok()?),
            BETWEEN => from = Some(Snapshot::read(&mut bytes)?),
            AT => from = Some(until.clone()),
            _ => return None,
        }
        let position = Self {
            epoch,
            from,
            until,
            request,
            event,
        };
        let xmax = |snapshot: &Snapshot| snapshot.xmax() <= position.until.xmax();
        let in_order = position.from.as_ref().is_none_or(xmax);
        // Must be written as the same bytes: no second form of a number, nothing after the end.
        (in_order && position.cursor() == *cursor).then_some(position)
    }

    pub(crate) fn cursor(&self) -> ChangeCursor {
        let kind = match &self.from {
            None => HISTORY,
            Some(from) if *from == self.until => AT,
            Some(_) => BETWEEN,
        };
        let mut bytes = vec![kind];
        bytes.extend(self.epoch.0.to_be_bytes());
        varint::write(&mut bytes, self.event.cast_unsigned());
        self.until.write(&mut bytes);
        match &self.from {
            None => bytes.extend(self.request.as_bytes()),
            Some(from) if kind == BETWEEN => from.write(&mut bytes),
            Some(_) => {}
        }
        ChangeCursor(bytes)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use leasehold_core::limits::{CURSOR_MAX_BYTES, CURSOR_MAX_WRITERS};

    const EPOCH: EpochId = EpochId(7_000_000_000_000_000_001);

    fn snapshot(text: &str) -> Snapshot {
        Snapshot::parse(text).unwrap()
    }

    fn positions() -> Vec<StreamPosition> {
        let between = StreamPosition::at(EPOCH, Some(snapshot("5:5:")), snapshot("10:20:10,19"));
        vec![
            StreamPosition::at(EPOCH, None, snapshot("10:20:11,12"))
                .after(Uuid::from_u128(7), i64::MAX),
            between.after(Uuid::from_u128(7), 300),
            StreamPosition::at(EPOCH, Some(snapshot("7:9:8")), snapshot("7:9:8")),
        ]
    }

    #[test]
    fn cursor_round_trips() {
        for position in positions() {
            assert_eq!(StreamPosition::parse(&position.cursor()), Some(position));
        }
    }

    #[test]
    fn position_is_valid_in_a_later_epoch_unless_it_saw_a_transaction_of_it() {
        let next = EpochId(8);
        let at = |from: &str, until: &str| {
            StreamPosition::at(EPOCH, Some(snapshot(from)), snapshot(until))
                .after(Uuid::nil(), 3)
                .continued_in(next, 20)
        };
        let expected = StreamPosition::at(next, Some(snapshot("7:9:8")), snapshot("10:20:11"));
        let expected = Some(expected.after(Uuid::nil(), 3));
        assert_eq!(at("7:9:8", "10:20:11"), expected);
        // It knew of later transactions, but saw none of them.
        assert_eq!(at("7:9:8", "10:23:11,20,21,22"), expected);
        assert_eq!(at("7:9:8", "10:23:11,20,22"), None);
        assert_eq!(at("7:9:8", "30:30:"), None);
        let history = StreamPosition::at(EPOCH, None, snapshot("10:21:"));
        assert_eq!(history.continued_in(next, 20), None);
    }

    #[test]
    fn fuzzed_cursor_is_rejected_or_is_written_as_itself() {
        let examples: Vec<Vec<u8>> = positions().iter().map(|p| p.cursor().0).collect();
        let examples: Vec<&[u8]> = examples.iter().map(Vec::as_slice).collect();
        leasehold_testkit::Fuzzer::of_bytes(&examples).run(|input| {
            let cursor = ChangeCursor(input.to_vec());
            let position = StreamPosition::parse(&cursor)?;
            assert_eq!(position.cursor(), cursor);
            Some((position.from.is_some(), position.until.xmax() % 8))
        });
    }

    #[test]
    fn truncated_or_extended_cursor_is_rejected() {
        for position in positions() {
            let bytes = position.cursor().0;
            for length in 0..bytes.len() {
                let cut = ChangeCursor(bytes[..length].to_vec());
                assert_eq!(StreamPosition::parse(&cut), None, "{length} bytes");
            }
            let longer = ChangeCursor([&bytes[..], &[0]].concat());
            assert_eq!(StreamPosition::parse(&longer), None);
        }
        let reversed = StreamPosition::at(EPOCH, Some(snapshot("9:12:")), snapshot("7:9:8"));
        assert_eq!(StreamPosition::parse(&reversed.cursor()), None);
    }

    #[test]
    fn cursor_with_hundreds_of_writers_fits_into_a_header() {
        let writers = |first: u64| {
            let xids = (0..CURSOR_MAX_WRITERS as u64).map(|n| (first + n * 40_000).to_string());
            let xids: Vec<String> = xids.collect();
            snapshot(&format!(
                "{first}:{}:{}",
                first + 90_000_000,
                xids.join(",")
            ))
        };
        let busy = StreamPosition::at(
            EPOCH,
            Some(writers(1_000_000_000_000)),
            writers(1_000_100_000_000),
        );
        let length = busy.after(Uuid::nil(), i64::MAX).cursor().0.len();
        // The server adds a header and base64.
        assert!((length + 64) * 4 / 3 <= CURSOR_MAX_BYTES, "{length} bytes");
    }
}
