//! A position in the change stream and its text form, the cursor. Accepts only cursors that it would print. Knows no SQL.

use leasehold_store::change::ChangeCursor;
use std::fmt;
use uuid::Uuid;

/// Identifies a stream. Transaction numbers are valid only within one cluster, events only within one database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamId {
    pub(crate) cluster: u64,
    pub(crate) database: u32,
}

/// The reader is between two snapshots: it reads events that `until` sees and `from` does not. Without `from` it reads the history,
/// request by request; otherwise events in the order they were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StreamPosition {
    pub(crate) stream: StreamId,
    pub(crate) from: Option<Snapshot>,
    pub(crate) until: Snapshot,
    pub(crate) request: Uuid,
    pub(crate) event: i64,
}

const OLDEST: &str = "oldest";

impl StreamPosition {
    /// Returns the position before all events between two snapshots.
    pub(crate) fn at(stream: StreamId, from: Option<Snapshot>, until: Snapshot) -> Self {
        Self {
            stream,
            from,
            until,
            request: Uuid::nil(),
            event: 0,
        }
    }

    pub(crate) fn parse(cursor: &ChangeCursor) -> Option<Self> {
        let mut parts = cursor.0.split('/');
        let stream = StreamId {
            cluster: parts.next()?.parse().ok()?,
            database: parts.next()?.parse().ok()?,
        };
        let from = match parts.next()? {
            OLDEST => None,
            text => Some(Snapshot::parse(text)?),
        };
        let position = Self {
            stream,
            from,
            until: Snapshot::parse(parts.next()?)?,
            request: parts.next()?.parse().ok()?,
            event: parts.next()?.parse().ok()?,
        };
        let in_order = position
            .from
            .as_ref()
            .is_none_or(|from| from.xmax <= position.until.xmax);
        // Must print as the same text: no signs, no leading zeros, no trailing text.
        (in_order && position.event >= 0 && position.cursor() == *cursor).then_some(position)
    }

    pub(crate) fn cursor(&self) -> ChangeCursor {
        let StreamId { cluster, database } = self.stream;
        let from = self
            .from
            .as_ref()
            .map_or_else(|| OLDEST.to_owned(), Snapshot::to_string);
        let (until, request, event) = (&self.until, self.request, self.event);
        ChangeCursor(format!(
            "{cluster}/{database}/{from}/{until}/{request}/{event}"
        ))
    }
}

/// A snapshot as PostgreSQL prints it, `xmin:xmax:xip,…`: transactions from `xmax` on and those in `xip` are not seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    xmin: u64,
    xmax: u64,
    xip: Vec<u64>,
}

impl Snapshot {
    /// Parses a snapshot as strictly as PostgreSQL does.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ':');
        let xmin = parts.next()?.parse().ok()?;
        let xmax = parts.next()?.parse().ok()?;
        let xip: Vec<u64> = match parts.next()? {
            "" => Vec::new(),
            list => list
                .split(',')
                .map(str::parse)
                .collect::<Result<_, _>>()
                .ok()?,
        };
        let in_range = xip.iter().all(|xid| (xmin..xmax).contains(xid));
        let is_valid = 0 < xmin && xmin <= xmax && in_range && xip.is_sorted_by(|a, b| a < b);
        is_valid.then_some(Self { xmin, xmax, xip })
    }

    /// The first transaction number that was not assigned yet.
    pub(crate) fn xmax(&self) -> u64 {
        self.xmax
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:", self.xmin, self.xmax)?;
        for (n, xid) in self.xip.iter().enumerate() {
            let comma = if n > 0 { "," } else { "" };
            write!(f, "{comma}{xid}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const STREAM: StreamId = StreamId {
        cluster: 7_000_000_000_000_000_000,
        database: 5,
    };

    fn snapshot(text: &str) -> Snapshot {
        Snapshot::parse(text).unwrap()
    }

    #[test]
    fn cursor_round_trips() {
        let positions = [
            StreamPosition::at(STREAM, None, snapshot("10:20:11,12")),
            StreamPosition {
                event: i64::MAX,
                ..StreamPosition::at(STREAM, Some(snapshot("5:5:")), snapshot("10:20:10"))
            },
        ];
        for position in positions {
            assert_eq!(StreamPosition::parse(&position.cursor()), Some(position));
        }
    }

    #[test]
    fn malformed_cursor_is_rejected() {
        let nil = Uuid::nil();
        let good = format!("1/5/7:9:8/9:12:/{nil}/3");
        assert!(StreamPosition::parse(&ChangeCursor(good.clone())).is_some());
        for text in [
            "".to_owned(),
            "1".to_owned(),
            format!("{good}/"),
            format!("+{good}"),
            format!("0{good}"),
            format!("-{good}"),
            format!("1/99999999999/oldest/1:1:/{nil}/0"),
            format!("99999999999999999999/5/oldest/1:1:/{nil}/0"),
            format!("1/5/x/1:1:/{nil}/0"),
            format!("1/5/9:12:/7:9:8/{nil}/3"),
            format!("1/5/oldest/1:1/{nil}/0"),
            format!("1/5/oldest/1:1:a/{nil}/0"),
            format!("1/5/oldest/1:1::/{nil}/0"),
            format!("1/5/oldest/+1:1:/{nil}/0"),
            format!("1/5/oldest/0:0:/{nil}/0"),
            format!("1/5/oldest/2:1:/{nil}/0"),
            format!("1/5/oldest/7:9:9/{nil}/0"),
            format!("1/5/oldest/7:9:6/{nil}/0"),
            format!("1/5/oldest/7:9:8,7/{nil}/0"),
            format!("1/5/oldest/7:9:8,8/{nil}/0"),
            format!("1/5/oldest/99999999999999999999:1:/{nil}/0"),
            format!("1/5/oldest/1:1:/{nil}/-1"),
            format!("1/5/oldest/1:1:/{nil}/9223372036854775808"),
            "1/5/oldest/1:1:/x/0".to_owned(),
            format!("1/5/oldest/1:1:/{}/0", nil.simple()),
        ] {
            assert_eq!(
                StreamPosition::parse(&ChangeCursor(text.clone())),
                None,
                "{text}"
            );
        }
    }
}
