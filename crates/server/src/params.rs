//! Extractors of path and query parameters. An error names the invalid parameter.

use crate::api_error::{ApiError, ApiResult};
use crate::cursors::ListCursors;
use crate::state::State;
use axum::extract::FromRequestParts;
use axum::extract::path::ErrorKind;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::http::request::Parts;
use leasehold_store::Page;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::str::FromStr;
use utoipa::IntoParams;

/// Path parameters.
pub(crate) struct Path<T>(pub(crate) T);

/// Query parameters.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<State> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> ApiResult<Self> {
        match axum::extract::Path::from_request_parts(parts, state).await {
            Ok(axum::extract::Path(value)) => Ok(Self(value)),
            Err(PathRejection::FailedToDeserializePathParams(error)) => {
                let name = match error.kind() {
                    ErrorKind::ParseErrorAtKey { key, .. }
                    | ErrorKind::DeserializeError { key, .. } => key.clone(),
                    _ => "path".to_owned(),
                };
                Err(ApiError::parameter(name, error.kind().to_string()))
            }
            Err(error) => Err(ApiError::parameter("path", error.body_text())),
        }
    }
}

impl<T: DeserializeOwned> FromRequestParts<State> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> ApiResult<Self> {
        let read: Result<_, QueryRejection> =
            axum::extract::Query::from_request_parts(parts, state).await;
        match read {
            Ok(axum::extract::Query(value)) => Ok(Self(value)),
            Err(error) => Err(ApiError::parameter("query", error.body_text())),
        }
    }
}

/// Reads an optional header, which must be UTF-8.
pub(crate) fn header(
    headers: &axum::http::HeaderMap,
    name: &'static str,
) -> ApiResult<Option<String>> {
    let Some(value) = headers.get(name) else {
        return Ok(None);
    };
    match std::str::from_utf8(value.as_bytes()) {
        Ok(text) => Ok(Some(text.to_owned())),
        Err(_) => Err(ApiError::parameter(name, "must be UTF-8")),
    }
}

/// Default number of rows of a page.
pub(crate) const PAGE_DEFAULT: u32 = 100;

/// Selects a page of a list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Paging {
    /// Cursor: the `next` of the previous page.
    pub(crate) after: Option<String>,
    /// Maximum number of items. Default: 100.
    #[param(minimum = 1, maximum = 1000)]
    pub(crate) limit: Option<u32>,
}

impl Paging {
    /// Returns the page to request from the store.
    pub(crate) fn page<K: FromStr>(&self, cursors: &ListCursors<'_>) -> ApiResult<Page<K>> {
        cursors.page(self.after.as_deref(), self.limit)
    }
}

/// Selects a page of a list of named items, or the one item with a name.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct NameFilter {
    /// Only the item with exactly this name. Cannot be combined with `after`.
    pub(crate) name: Option<String>,
    /// Cursor: the `next` of the previous page.
    pub(crate) after: Option<String>,
    /// Maximum number of items. Default: 100.
    #[param(minimum = 1, maximum = 1000)]
    pub(crate) limit: Option<u32>,
}

impl NameFilter {
    /// Returns the page to request from the store, and the name if one was given.
    pub(crate) fn page<K: FromStr>(
        self,
        cursors: &ListCursors<'_>,
    ) -> ApiResult<(Page<K>, Option<String>)> {
        let page = cursors.page(self.after.as_deref(), self.limit)?;
        if self.name.is_some() && self.after.is_some() {
            let problem = "cannot be combined with `name`";
            return Err(ApiError::parameter("after", problem));
        }
        Ok((page, self.name))
    }
}

/// Builds the only page of a list that was filtered by name: one item or none.
pub(crate) fn single_page<S, T>(
    found: Option<S>,
    convert: impl Fn(S) -> T,
) -> leasehold_api::Page<T> {
    leasehold_api::Page {
        items: found.into_iter().map(convert).collect(),
        next: None,
    }
}

/// Builds a page. A full page has a `next`, and the page after it may be empty.
pub(crate) fn page_response<S, T>(
    rows: Vec<S>,
    limit: u32,
    cursors: &ListCursors<'_>,
    key: impl Fn(&S) -> String,
    convert: impl Fn(S) -> T,
) -> leasehold_api::Page<T> {
    let full = rows.len() >= limit as usize;
    let next = rows
        .last()
        .filter(|_| full)
        .map(|row| cursors.seal(key(row)));
    leasehold_api::Page {
        items: rows.into_iter().map(convert).collect(),
        next,
    }
}
