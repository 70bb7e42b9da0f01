//! Paged lists, read one page at a time or as a stream. Knows no route.

use crate::client::Client;
use crate::error::Result;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use leasehold_api::Page;
use serde::de::DeserializeOwned;
use std::marker::PhantomData;

/// A paged list on the server.
#[derive(Clone, Debug)]
#[must_use = "a list does nothing until `page`, `stream` or `all` reads it"]
pub struct List<T> {
    client: Client,
    path: Vec<String>,
    query: Vec<(&'static str, String)>,
    item: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned + Send + 'static> List<T> {
    pub(crate) fn new(client: &Client, path: &[&str]) -> Self {
        Self {
            client: client.clone(),
            path: path.iter().map(ToString::to_string).collect(),
            query: Vec::new(),
            item: PhantomData,
        }
    }

    pub(crate) fn filter(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        self.query
            .extend(value.map(|value| (name, value.to_string())));
        self
    }

    /// Sets the page size. Default: the server's.
    pub fn limit(self, rows: u32) -> Self {
        self.filter("limit", Some(rows))
    }

    /// Reads one page: the first, or the one after another page's `next`.
    ///
    /// # Errors
    /// Fails if the call fails.
    pub async fn page(&self, after: Option<&str>) -> Result<Page<T>> {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let mut call = self.client.get(&path);
        for (name, value) in &self.query {
            call = call.query(name, Some(value));
        }
        call.query("after", after).json().await
    }

    /// Streams all items, reading page after page.
    pub fn stream(self) -> impl Stream<Item = Result<T>> + Send {
        let first = Some((self, None::<String>));
        let pages = stream::try_unfold(first, |at| async move {
            let Some((list, after)) = at else {
                return Ok(None);
            };
            let page = list.page(after.as_deref()).await?;
            let next = page.next.map(|next| (list, Some(next)));
            Ok(Some((page.items, next)))
        });
        pages
            .map_ok(|items| stream::iter(items.into_iter().map(Ok)))
            .try_flatten()
            .boxed()
    }

    /// Reads all items into memory; for lists known to be short.
    ///
    /// # Errors
    /// Fails if a call fails.
    pub async fn all(self) -> Result<Vec<T>> {
        self.stream().try_collect().await
    }
}
