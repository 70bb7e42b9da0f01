//! Keyset pagination: a page starts after a known key, never at an offset.

use leasehold_core::limits::PAGE_MAX;

/// One page of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page<K> {
    /// The key of the last row of the previous page; none for the first page.
    pub after: Option<K>,
    /// The maximum number of rows; capped at [`PAGE_MAX`].
    pub limit: u32,
}

impl<K> Page<K> {
    /// Creates the page of the first `limit` rows.
    pub fn first(limit: u32) -> Self {
        Self { after: None, limit }
    }

    /// Creates the page of the `limit` rows after `key`.
    pub fn after(key: K, limit: u32) -> Self {
        Self {
            after: Some(key),
            limit,
        }
    }

    /// Returns the number of rows to read.
    pub fn rows(&self) -> i64 {
        i64::from(self.limit.min(PAGE_MAX))
    }
}
