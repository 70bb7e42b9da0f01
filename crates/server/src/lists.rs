//! Reads pages of a list, bounded in bytes and in rows: a few rows per query, serialized at once, ended early when the page is large. Knows no route.

use crate::api_error::{ApiError, ApiResult};
use crate::body::Json;
use crate::call_memory;
use crate::call_owner::{self, Owner};
use crate::cursors::ListCursors;
use crate::owner_pool::{OwnerPermit, OwnerPool};
use futures::future::BoxFuture;
use leasehold_api::{self as api, Code};
use leasehold_core::limits::{
    ERROR_MAX_CHARS, GRAPH_MAX_BYTES, LISTS_MAX, PARAMS_MAX_BYTES, PAYLOAD_MAX_BYTES,
    SCHEMA_MAX_BYTES,
};
use leasehold_store::{Page, Result};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::sync::Arc;

/// Size in bytes after which a page ends, even with fewer rows than requested.
const PAGE_MAX_BYTES: usize = 4 * 1024 * 1024;
/// Bytes that the rows of one query have at most, even if each is as large as a row can be: small rows before them promise nothing. A fifth more than a
/// page, so that one owner's share of the memory for responses has room for three lists.
const QUERY_MAX_BYTES: usize = 5 * 1024 * 1024;
/// Most rows of a query.
const ROWS_PER_QUERY: u32 = 32;
/// Rows of the first query, when the size of rows is not known.
const FIRST_ROWS: u32 = 8;
/// Bytes of the fields of a row that have a small limit each, about.
const SMALL_FIELDS_BYTES: usize = 4 * 1024;

/// The bytes that one row of a list has at most, about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowMaxBytes(usize);

impl RowMaxBytes {
    /// Its params, and its last error.
    pub(crate) const REQUEST: Self = Self::of(PARAMS_MAX_BYTES + ERROR_MAX_BYTES);
    /// Its payload, result and progress, and its last error.
    pub(crate) const JOB: Self = Self::of(3 * PAYLOAD_MAX_BYTES + ERROR_MAX_BYTES);
    /// Its error.
    pub(crate) const EXECUTION: Self = Self::of(ERROR_MAX_BYTES);
    /// Its body and its params schema.
    pub(crate) const VERSION: Self = Self::of(GRAPH_MAX_BYTES + SCHEMA_MAX_BYTES);

    const fn of(large_fields: usize) -> Self {
        Self(large_fields + SMALL_FIELDS_BYTES)
    }

    /// Returns the most rows of a query.
    fn rows_per_query(self) -> u32 {
        let rows = QUERY_MAX_BYTES / self.0.max(1);
        u32::try_from(rows)
            .unwrap_or(u32::MAX)
            .clamp(1, ROWS_PER_QUERY)
    }
}

/// Bytes of an error of the most characters.
const ERROR_MAX_BYTES: usize = 4 * ERROR_MAX_CHARS;

/// A page whose items are already serialized.
pub(crate) type JsonPage = Json<api::Page<Box<RawValue>>>;

/// Reads lists, a limited number at a time, shared fairly by workspace or key.
pub(crate) struct ListReader(Arc<OwnerPool>);

impl Default for ListReader {
    fn default() -> Self {
        Self(OwnerPool::new(LISTS_MAX))
    }
}

impl ListReader {
    /// Acquires a permit to read a large response; dropping it releases the permit.
    pub(crate) async fn permit(&self) -> OwnerPermit {
        let owner = call_owner::current().unwrap_or(Owner::Anonymous);
        self.0.acquire(owner).await
    }

    /// Reads a page of rows of at most this size: `read` queries rows after a key, `key` returns the key of a row and `convert` its JSON form. The memory
    /// is reserved of a page, one row over it, and the rows of a query.
    pub(crate) async fn page<K, R, T>(
        &self,
        page: Page<K>,
        cursors: &ListCursors<'_>,
        row_max: RowMaxBytes,
        read: impl Fn(Page<K>) -> BoxFuture<'static, Result<Vec<R>>>,
        key: impl Fn(&R) -> K,
        convert: impl Fn(R) -> T,
    ) -> ApiResult<JsonPage>
    where
        K: Clone + ToString,
        T: Serialize,
    {
        call_memory::reserve(PAGE_MAX_BYTES + row_max.0 + QUERY_MAX_BYTES).await?;
        let _permit = self.permit().await;
        let (mut items, mut bytes) = (Vec::new(), 0);
        let mut after = page.after;
        let most_ever = row_max.rows_per_query();
        let mut most = FIRST_ROWS.min(most_ever);
        loop {
            let left = page.limit - u32::try_from(items.len()).unwrap_or(u32::MAX);
            let limit = left.min(most);
            let rows = read(Page {
                after: after.clone(),
                limit,
            })
            .await?;
            let last = rows.len() < limit as usize;
            for row in rows {
                let row_key = key(&row);
                let item = to_raw_value(&convert(row)).map_err(serialization_failed)?;
                bytes += item.get().len();
                items.push(item);
                after = Some(row_key);
                if bytes >= PAGE_MAX_BYTES {
                    return Ok(json_page(items, cursors, after));
                }
            }
            if last {
                return Ok(json_page::<K>(items, cursors, None));
            }
            if left == limit {
                return Ok(json_page(items, cursors, after));
            }
            most = next_rows(most, items.len(), bytes).min(most_ever);
        }
    }
}

/// Returns the rows of the next query: as many as fill the page if they are as large as those before, and at most twice as many as the last.
fn next_rows(last: u32, rows: usize, bytes: usize) -> u32 {
    let average = bytes.checked_div(rows).unwrap_or_default().max(1);
    let fitting = PAGE_MAX_BYTES.saturating_sub(bytes) / average;
    let fitting = u32::try_from(fitting).unwrap_or(u32::MAX);
    fitting.clamp(1, ROWS_PER_QUERY.min(last.saturating_mul(2)))
}

fn json_page<K: ToString>(
    items: Vec<Box<RawValue>>,
    cursors: &ListCursors<'_>,
    next: Option<K>,
) -> JsonPage {
    let next = next.map(|key| cursors.seal(key.to_string()));
    Json(api::Page { items, next })
}

fn serialization_failed(error: serde_json::Error) -> ApiError {
    tracing::error!(%error, "failed to serialize a row as JSON");
    ApiError::new(Code::Internal, "internal error; see the server's log")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

    /// Reads a list of `rows` rows of `bytes` bytes page by page; returns the rows of each page and the most rows of one query.
    async fn pages(rows: u32, bytes: usize, limit: u32) -> (Vec<Vec<u32>>, u32) {
        let (lists, most) = (ListReader::default(), AtomicU32::new(0));
        let cursors = crate::cursors::tests::test_cursors();
        let read = |page: Page<u32>| -> BoxFuture<'static, Result<Vec<u32>>> {
            most.fetch_max(page.limit, Ordering::Relaxed);
            let first = page.after.map_or(0, |after| after + 1);
            let found = (first..rows.min(first + page.limit)).collect();
            Box::pin(std::future::ready(Ok(found)))
        };
        let (mut pages, mut after) = (Vec::new(), None);
        loop {
            let page = Page { after, limit };
            let convert = |row: u32| (row, "x".repeat(bytes));
            let row_max = RowMaxBytes(bytes + 100);
            let page = lists.page(page, &cursors, row_max, &read, |row| *row, convert);
            let Json(page) = page.await.unwrap();
            let numbers = page.items.iter().map(|item| {
                let (number, _): (u32, String) = serde_json::from_str(item.get()).unwrap();
                number
            });
            pages.push(numbers.collect());
            match page.next {
                Some(next) => after = cursors.page(Some(&next), None).unwrap().after,
                None => return (pages, most.into_inner()),
            }
        }
    }

    #[tokio::test]
    async fn small_rows_fill_pages_and_no_row_is_missing() {
        let (pages, most) = pages(250, 10, 100).await;
        assert_eq!(
            pages.iter().map(Vec::len).collect::<Vec<_>>(),
            [100, 100, 50]
        );
        assert_eq!(pages.concat(), (0..250).collect::<Vec<u32>>());
        assert_eq!(most, ROWS_PER_QUERY);
    }

    #[tokio::test]
    async fn large_rows_end_a_page_early_and_the_next_page_continues() {
        let (pages, _) = pages(40, 500 * 1024, 1000).await;
        assert_eq!(pages[0].len(), 9);
        assert_eq!(pages.concat(), (0..40).collect::<Vec<u32>>());
    }

    #[tokio::test]
    async fn list_that_ends_with_a_full_page_is_followed_by_an_empty_page() {
        let (pages, _) = pages(64, 10, 32).await;
        assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [32, 32, 0]);
    }

    /// Small rows used to promise small rows: after 24 of them, a query read 32 rows of a megabyte.
    #[tokio::test]
    async fn large_rows_after_small_ones_are_read_a_few_at_a_time() {
        const ROWS: u32 = 60;
        let lists = ListReader::default();
        let cursors = crate::cursors::tests::test_cursors();
        let size = |row: u32| if row < 24 { 1 } else { 1024 * 1024 };
        let largest = AtomicUsize::new(0);
        let read = |page: Page<u32>| -> BoxFuture<'static, Result<Vec<u32>>> {
            let first = page.after.map_or(0, |after| after + 1);
            let found: Vec<u32> = (first..ROWS.min(first + page.limit)).collect();
            let bytes = found.iter().map(|row| size(*row)).sum();
            largest.fetch_max(bytes, Ordering::Relaxed);
            Box::pin(std::future::ready(Ok(found)))
        };
        let convert = |row: u32| "x".repeat(size(row));
        let page = Page::first(1000);
        let row_max = RowMaxBytes::VERSION;
        let read_page = lists.page(page, &cursors, row_max, &read, |row| *row, convert);
        let Json(page) = read_page.await.unwrap();
        assert_eq!(page.items.len(), 24 + 4);
        assert!(largest.into_inner() <= QUERY_MAX_BYTES);
    }

    #[test]
    fn rows_of_a_query_fit_into_its_memory() {
        let rows = [
            (RowMaxBytes::REQUEST, 18),
            (RowMaxBytes::JOB, 6),
            (RowMaxBytes::EXECUTION, 32),
            (RowMaxBytes::VERSION, 4),
        ];
        for (row_max, expected) in rows {
            assert_eq!(row_max.rows_per_query(), expected, "{row_max:?}");
        }
    }
}
