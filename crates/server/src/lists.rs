//! Lists bounded in bytes as well as in rows: read a few rows at a time, kept as text, cut where they become too large. Knows no route.

use crate::body::Json;
use crate::refusal::{Outcome, Refusal};
use futures::future::BoxFuture;
use leasehold_api::{Code, Page as Shown};
use leasehold_store::{Page, Result};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Bytes after which a page ends, though it has fewer rows than were asked for.
const PAGE_MAX_BYTES: usize = 4 * 1024 * 1024;
/// Rows read at once: each may hold a quarter of a mebibyte as text, and many times that once it is read.
const ROWS_AT_ONCE: u32 = 32;
/// Lists read at once.
const LISTS_AT_ONCE: usize = 4;

/// A page whose items are JSON already.
pub(crate) type Listed = Json<Shown<Box<RawValue>>>;

/// The turns of those who read lists.
pub(crate) struct Lists(Semaphore);

impl Default for Lists {
    fn default() -> Self {
        Self(Semaphore::new(LISTS_AT_ONCE))
    }
}

impl Lists {
    /// The turn of someone who reads much at once, until it is dropped.
    pub(crate) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.0.acquire().await.ok()
    }

    /// Reads a page: `read` gives rows after a key, `key` is a row's, and `shown` is how it looks.
    pub(crate) async fn page<K, R, T>(
        &self,
        page: Page<K>,
        read: impl Fn(Page<K>) -> BoxFuture<'static, Result<Vec<R>>>,
        key: impl Fn(&R) -> K,
        shown: impl Fn(R) -> T,
    ) -> Outcome<Listed>
    where
        K: Clone + ToString,
        T: Serialize,
    {
        let _turn = self.turn().await;
        let (mut items, mut bytes) = (Vec::new(), 0);
        let mut after = page.after;
        loop {
            let left = page.limit - u32::try_from(items.len()).unwrap_or(u32::MAX);
            let limit = left.min(ROWS_AT_ONCE);
            let rows = read(Page {
                after: after.clone(),
                limit,
            })
            .await?;
            let last = rows.len() < limit as usize;
            for row in rows {
                let place = key(&row);
                let item = to_raw_value(&shown(row)).map_err(unwritable)?;
                bytes += item.get().len();
                items.push(item);
                after = Some(place);
                if bytes >= PAGE_MAX_BYTES {
                    return Ok(answer(items, after));
                }
            }
            if last {
                return Ok(answer::<K>(items, None));
            }
            if left == limit {
                return Ok(answer(items, after));
            }
        }
    }
}

fn answer<K: ToString>(items: Vec<Box<RawValue>>, next: Option<K>) -> Listed {
    let next = next.map(|key| key.to_string());
    Json(Shown { items, next })
}

fn unwritable(error: serde_json::Error) -> Refusal {
    tracing::error!(%error, "a row cannot be written as JSON");
    Refusal::of(Code::Internal, "the server failed; its log says why")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A list of so many rows of so many bytes, read to its end page by page: the rows of each page, and the most rows read at once.
    async fn pages(rows: u32, bytes: usize, limit: u32) -> (Vec<Vec<u32>>, u32) {
        let (lists, most) = (Lists::default(), AtomicU32::new(0));
        let read = |page: Page<u32>| -> BoxFuture<'static, Result<Vec<u32>>> {
            most.fetch_max(page.limit, Ordering::Relaxed);
            let first = page.after.map_or(0, |after| after + 1);
            let found = (first..rows.min(first + page.limit)).collect();
            Box::pin(std::future::ready(Ok(found)))
        };
        let (mut pages, mut after) = (Vec::new(), None);
        loop {
            let page = Page { after, limit };
            let shown = |row: u32| (row, "x".repeat(bytes));
            let Json(shown) = lists.page(page, &read, |row| *row, shown).await.unwrap();
            let numbers = shown.items.iter().map(|item| {
                let (number, _): (u32, String) = serde_json::from_str(item.get()).unwrap();
                number
            });
            pages.push(numbers.collect());
            match shown.next {
                Some(next) => after = Some(next.parse().unwrap()),
                None => return (pages, most.into_inner()),
            }
        }
    }

    #[tokio::test]
    async fn small_rows_fill_their_pages_and_none_is_left_out() {
        let (pages, most) = pages(250, 10, 100).await;
        assert_eq!(
            pages.iter().map(Vec::len).collect::<Vec<_>>(),
            [100, 100, 50]
        );
        assert_eq!(pages.concat(), (0..250).collect::<Vec<u32>>());
        assert_eq!(most, ROWS_AT_ONCE);
    }

    #[tokio::test]
    async fn large_rows_end_a_page_early_and_the_next_goes_on() {
        let (pages, _) = pages(40, 500 * 1024, 1000).await;
        assert_eq!(pages[0].len(), 9);
        assert_eq!(pages.concat(), (0..40).collect::<Vec<u32>>());
    }

    #[tokio::test]
    async fn a_list_that_ends_with_a_full_page_has_an_empty_one_behind_it() {
        let (pages, _) = pages(64, 10, 32).await;
        assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [32, 32, 0]);
    }
}
