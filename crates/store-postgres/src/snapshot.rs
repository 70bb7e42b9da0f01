//! A snapshot of PostgreSQL's transactions: which of them a reader has seen. Knows no SQL.

use crate::varint;
use std::fmt;

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
        Self { xmin, xmax, xip }.checked()
    }

    fn checked(self) -> Option<Self> {
        let Self { xmin, xmax, xip } = &self;
        let in_range = xip.iter().all(|xid| (*xmin..*xmax).contains(xid));
        let is_valid = 0 < *xmin && xmin <= xmax && in_range && xip.is_sorted_by(|a, b| a < b);
        is_valid.then_some(self)
    }

    /// It sees every transaction with a lower number.
    pub(crate) fn xmin(&self) -> u64 {
        self.xmin
    }

    /// The first transaction number that it does not see, nor any after it.
    pub(crate) fn xmax(&self) -> u64 {
        self.xmax
    }

    /// Returns a snapshot that sees the same of the transactions before `xmax`, and no others.
    #[must_use]
    pub(crate) fn before(&self, xmax: u64) -> Self {
        let xmax = xmax.min(self.xmax);
        Self {
            xmin: self.xmin.min(xmax),
            xmax,
            xip: self.xip.iter().copied().filter(|xid| *xid < xmax).collect(),
        }
    }

    /// Returns the latest snapshot that sees every transaction before its end.
    #[must_use]
    pub(crate) fn oldest(&self) -> Self {
        self.before(self.xip.first().copied().unwrap_or(self.xmax))
    }

    /// Returns the snapshot for a history in which transactions from `start` on are others; none if it sees one of these numbers.
    pub(crate) fn without(&self, start: u64) -> Option<Self> {
        let unseen = self.xip.iter().filter(|xid| **xid >= start).count();
        let beyond = self.xmax.saturating_sub(start);
        (u64::try_from(unseen) == Ok(beyond)).then(|| self.before(start))
    }

    /// Returns a snapshot with at most so many transactions in progress: it ends before the next one.
    #[must_use]
    pub(crate) fn within(&self, writers: usize) -> Self {
        match self.xip.get(writers) {
            Some(next) => self.before(*next),
            None => self.clone(),
        }
    }

    /// Makes these transactions unseen, as if they were in progress.
    pub(crate) fn hide(&mut self, xids: &[u64]) {
        let below = |xid: &&u64| **xid < self.xmax;
        self.xip.extend(xids.iter().filter(below));
        self.xip.sort_unstable();
        self.xip.dedup();
        let first = self.xip.first().copied().unwrap_or(self.xmin);
        self.xmin = self.xmin.min(first);
    }

    /// Appends the snapshot: each number as the difference to the one before it.
    pub(crate) fn write(&self, bytes: &mut Vec<u8>) {
        varint::write(bytes, self.xmin);
        varint::write(bytes, self.xmax - self.xmin);
        varint::write(bytes, self.xip.len() as u64);
        let mut before = self.xmin;
        for xid in &self.xip {
            varint::write(bytes, xid - before);
            before = *xid;
        }
    }

    /// Reads a snapshot and advances `bytes`.
    pub(crate) fn read(bytes: &mut &[u8]) -> Option<Self> {
        let xmin = varint::read(bytes)?;
        let xmax = xmin.checked_add(varint::read(bytes)?)?;
        let count = varint::read(bytes)?;
        let (mut xip, mut before) = (Vec::new(), xmin);
        for _ in 0..count {
            before = before.checked_add(varint::read(bytes)?)?;
            xip.push(before);
        }
        Self { xmin, xmax, xip }.checked()
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

    fn snapshot(text: &str) -> Snapshot {
        Snapshot::parse(text).unwrap()
    }

    #[test]
    fn text_and_bytes_round_trip() {
        for text in ["1:1:", "10:20:10,12,19", "5:9:", "1:18446744073709551615:7"] {
            let snapshot = snapshot(text);
            assert_eq!(snapshot.to_string(), text);
            let mut bytes = Vec::new();
            snapshot.write(&mut bytes);
            let mut rest = bytes.as_slice();
            assert_eq!(Snapshot::read(&mut rest), Some(snapshot));
            assert!(rest.is_empty());
        }
    }

    #[test]
    fn malformed_snapshot_is_rejected() {
        for text in [
            "",
            "1",
            "1:1",
            "1:1:a",
            "1:1::",
            "0:0:",
            "2:1:",
            "7:9:9",
            "7:9:6",
            "7:9:8,7",
            "7:9:8,8",
            "99999999999999999999:1:",
            "-1:1:",
            "1:1:\0",
        ] {
            assert_eq!(Snapshot::parse(text), None, "{text}");
        }
    }

    #[test]
    fn earlier_snapshot_sees_the_same_of_the_transactions_before_its_end() {
        let now = snapshot("10:20:10,12,19");
        assert_eq!(now.before(15), snapshot("10:15:10,12"));
        assert_eq!(now.before(5), snapshot("5:5:"));
        assert_eq!(now.before(99), now);
        assert_eq!(now.within(3), now);
        assert_eq!(now.within(1), snapshot("10:12:10"));
        assert_eq!(now.oldest(), snapshot("10:10:"));
        assert_eq!(snapshot("20:20:").oldest(), snapshot("20:20:"));
        let mut hiding = snapshot("15:20:19");
        hiding.hide(&[16, 12, 16, 25]);
        assert_eq!(hiding, snapshot("12:20:12,16,19"));
    }
}
