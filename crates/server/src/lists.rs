//! Reads pages of a list, bounded in bytes and in rows: a few rows per query, serialized at once, ended early when the page is large. Knows no route.

use crate::api_error::{ApiError, ApiResult};
use crate::body::Json;
use futures::future::BoxFuture;
use leasehold_api::{self as api, Code};
use leasehold_store::{Page, Result};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Size in bytes after which a page ends, even with fewer rows than requested.
const PAGE_MAX_BYTES: usize = 4 * 1024 * 1024;
/// Rows per query: each may have 256 KiB of JSON text, and many times that in memory once parsed.
const ROWS_PER_QUERY: u32 = 32;
/// Maximum number of lists read concurrently.
const CONCURRENT_LISTS: usize = 4;

/// A page whose items are already serialized.
pub(crate) type JsonPage = Json<api::Page<Box<RawValue>>>;

/// Reads lists, a limited number at a time.
pub(crate) struct ListReader(Semaphore);

impl Default for ListReader {
    fn default() -> Self {
        Self(Semaphore::new(CONCURRENT_LISTS))
    }
}

impl ListReader {
    /// Acquires a permit to read a large response; dropping it releases the permit.
    pub(crate) async fn permit(&self) -> Option<SemaphorePermit<'_>> {
        self.0.acquire().await.ok()
    }

    /// Reads a page: `read` queries rows after a key, `key` returns the key of a row and `convert` its JSON form.
    pub(crate) async fn page<K, R, T>(
        &self,
        page: Page<K>,
        read: impl Fn(Page<K>) -> BoxFuture<'static, Result<Vec<R>>>,
        key: impl Fn(&R) -> K,
        convert: impl Fn(R) -> T,
    ) -> ApiResult<JsonPage>
    where
        K: Clone + ToString,
        T: Serialize,
    {
        let _permit = self.permit().await;
        let (mut items, mut bytes) = (Vec::new(), 0);
        let mut after = page.after;
        loop {
            let left = page.limit - u32::try_from(items.len()).unwrap_or(u32::MAX);
            let limit = left.min(ROWS_PER_QUERY);
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
                    return Ok(json_page(items, after));
                }
            }
            if last {
                return Ok(json_page::<K>(items, None));
            }
            if left == limit {
                return Ok(json_page(items, after));
            }
        }
    }
}

fn json_page<K: ToString>(items: Vec<Box<RawValue>>, next: Option<K>) -> JsonPage {
    let next = next.map(|key| key.to_string());
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
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Reads a list of `rows` rows of `bytes` bytes page by page; returns the rows of each page and the most rows of one query.
    async fn pages(rows: u32, bytes: usize, limit: u32) -> (Vec<Vec<u32>>, u32) {
        let (lists, most) = (ListReader::default(), AtomicU32::new(0));
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
            let Json(page) = lists.page(page, &read, |row| *row, convert).await.unwrap();
            let numbers = page.items.iter().map(|item| {
                let (number, _): (u32, String) = serde_json::from_str(item.get()).unwrap();
                number
            });
            pages.push(numbers.collect());
            match page.next {
                Some(next) => after = Some(next.parse().unwrap()),
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
}
