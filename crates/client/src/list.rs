//! Lists, a page at a time or all pages one after the other. Knows no route.

use crate::client::Client;
use crate::error::Result;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use leasehold_api::Page;
use serde::de::DeserializeOwned;
use std::marker::PhantomData;

/// A list on the server.
#[derive(Clone, Debug)]
#[must_use = "a list is read with `page` or `all`"]
pub struct List<T> {
    client: Client,
    path: Vec<String>,
    query: Vec<(&'static str, String)>,
    of: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned + Send + 'static> List<T> {
    pub(crate) fn new(client: &Client, path: &[&str]) -> Self {
        Self {
            client: client.clone(),
            path: path.iter().map(ToString::to_string).collect(),
            query: Vec::new(),
            of: PhantomData,
        }
    }

    pub(crate) fn only(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        self.query
            .extend(value.map(|value| (name, value.to_string())));
        self
    }

    /// How many a page has; the server's usual unless told.
    pub fn limit(self, rows: u32) -> Self {
        self.only("limit", Some(rows))
    }

    /// One page: the first, or the one after `next` of another.
    ///
    /// # Errors
    /// If the call does not succeed.
    pub async fn page(&self, after: Option<&str>) -> Result<Page<T>> {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let mut call = self.client.get(&path);
        for (name, value) in &self.query {
            call = call.query(name, Some(value));
        }
        call.query("after", after).json().await
    }

    /// Everything, page after page.
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

    /// Everything at once; for lists that are known to be short.
    ///
    /// # Errors
    /// If a call does not succeed.
    pub async fn all(self) -> Result<Vec<T>> {
        self.stream().try_collect().await
    }
}
