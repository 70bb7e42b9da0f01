//! Parameters of paths and queries, refused by name.

use crate::refusal::{Outcome, Refusal};
use crate::state::State;
use axum::extract::FromRequestParts;
use axum::extract::path::ErrorKind;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::http::request::Parts;
use leasehold_core::limits::PAGE_MAX;
use leasehold_store::Page;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::str::FromStr;
use utoipa::IntoParams;

/// What stands in the path.
pub(crate) struct Path<T>(pub(crate) T);

/// What stands behind the question mark.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<State> for Path<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Outcome<Self> {
        match axum::extract::Path::from_request_parts(parts, state).await {
            Ok(axum::extract::Path(value)) => Ok(Self(value)),
            Err(PathRejection::FailedToDeserializePathParams(error)) => {
                let name = match error.kind() {
                    ErrorKind::ParseErrorAtKey { key, .. }
                    | ErrorKind::DeserializeError { key, .. } => key.clone(),
                    _ => "path".to_owned(),
                };
                Err(Refusal::parameter(name, error.kind().to_string()))
            }
            Err(error) => Err(Refusal::parameter("path", error.body_text())),
        }
    }
}

impl<T: DeserializeOwned> FromRequestParts<State> for Query<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Outcome<Self> {
        let read: Result<_, QueryRejection> =
            axum::extract::Query::from_request_parts(parts, state).await;
        match read {
            Ok(axum::extract::Query(value)) => Ok(Self(value)),
            Err(error) => Err(Refusal::parameter("query", error.body_text())),
        }
    }
}

/// A header that may be absent and must be text.
pub(crate) fn header(
    headers: &axum::http::HeaderMap,
    name: &'static str,
) -> Outcome<Option<String>> {
    let Some(value) = headers.get(name) else {
        return Ok(None);
    };
    match std::str::from_utf8(value.as_bytes()) {
        Ok(text) => Ok(Some(text.to_owned())),
        Err(_) => Err(Refusal::parameter(name, "must be UTF-8")),
    }
}

/// Rows of a page unless said.
const PAGE_USUAL: u32 = 100;

/// Which page of a list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Paging {
    /// `next` of the page before.
    pub(crate) after: Option<String>,
    /// How many rows at most; 100 unless said.
    #[param(minimum = 1, maximum = 1000)]
    pub(crate) limit: Option<u32>,
}

impl Paging {
    /// The page to ask the store for.
    pub(crate) fn page<K: FromStr>(&self) -> Outcome<Page<K>> {
        paged(self.after.as_deref(), self.limit)
    }
}

/// Which page of a list whose items have names, or which one item.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Named {
    /// Only the one with exactly this name. There is no page after it, so `after` is refused with it.
    pub(crate) name: Option<String>,
    /// `next` of the page before.
    #[param(value_type = Option<uuid::Uuid>)]
    pub(crate) after: Option<String>,
    /// How many rows at most; 100 unless said.
    #[param(minimum = 1, maximum = 1000)]
    pub(crate) limit: Option<u32>,
}

impl Named {
    /// The page to ask the store for, and the name if one is asked for instead.
    pub(crate) fn page<K: FromStr>(self) -> Outcome<(Page<K>, Option<String>)> {
        let page = paged(self.after.as_deref(), self.limit)?;
        if self.name.is_some() && self.after.is_some() {
            let problem = "must not be given together with `name`";
            return Err(Refusal::parameter("after", problem));
        }
        Ok((page, self.name))
    }
}

/// The page to ask the store for.
pub(crate) fn paged<K: FromStr>(after: Option<&str>, limit: Option<u32>) -> Outcome<Page<K>> {
    let limit = limit.unwrap_or(PAGE_USUAL);
    if !(1..=PAGE_MAX).contains(&limit) {
        return Err(Refusal::parameter(
            "limit",
            format!("must be from 1 to {PAGE_MAX}"),
        ));
    }
    let after = after
        .map(|text| {
            text.parse().map_err(|_| {
                Refusal::parameter(
                    "after",
                    "must be the `next` of an earlier page of this list",
                )
            })
        })
        .transpose()?;
    Ok(Page { after, limit })
}

/// The page of a list that has the one item of a name, or none.
pub(crate) fn answered_alone<S, T>(
    found: Option<S>,
    shown: impl Fn(S) -> T,
) -> leasehold_api::Page<T> {
    leasehold_api::Page {
        items: found.into_iter().map(shown).collect(),
        next: None,
    }
}

/// A page as it is answered. A full one has a next, which may turn out empty.
pub(crate) fn answered<S, T>(
    rows: Vec<S>,
    limit: u32,
    key: impl Fn(&S) -> String,
    shown: impl Fn(S) -> T,
) -> leasehold_api::Page<T> {
    let full = rows.len() >= limit as usize;
    let next = rows.last().filter(|_| full).map(key);
    leasehold_api::Page {
        items: rows.into_iter().map(shown).collect(),
        next,
    }
}
