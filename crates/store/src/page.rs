//! Keyset pages: what comes after a known row, never an offset.

use leasehold_core::limits::PAGE_MAX;

/// One page of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page<K> {
    /// The last row of the page before, none for the first page.
    pub after: Option<K>,
    /// How many rows at most; more than [`PAGE_MAX`] counts as [`PAGE_MAX`].
    pub limit: u32,
}

impl<K> Page<K> {
    /// The first `limit` rows.
    pub fn first(limit: u32) -> Self {
        Self { after: None, limit }
    }

    /// The `limit` rows after `key`.
    pub fn after(key: K, limit: u32) -> Self {
        Self {
            after: Some(key),
            limit,
        }
    }

    /// The number of rows to ask the database for.
    pub fn rows(&self) -> i64 {
        i64::from(self.limit.min(PAGE_MAX))
    }
}
