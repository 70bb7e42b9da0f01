//! Bodies: bounded in size and in time, strict JSON, and refused with the path of what is wrong.

use crate::refusal::{self, Outcome, Refusal, pointer};
use crate::room::Taken;
use crate::state::State;
use crate::strict::Strict;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bytes::BytesMut;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use leasehold_api::Code;
use leasehold_core::json;
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_path_to_error::Track;

/// An ordinary body as JSON; as an answer, the JSON itself.
pub(crate) struct Json<T>(pub(crate) T);

/// Bytes of a body that is read beside the others.
const LARGE: usize = 256 * 1024;

/// A body that may carry a lot.
pub(crate) struct Batch<T>(pub(crate) T);

/// An ordinary body that may be absent or `null`: then everything in it is as usual.
pub(crate) struct Maybe<T>(pub(crate) T);

impl<T: DeserializeOwned + Send + 'static> FromRequest<State> for Json<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &State) -> Outcome<Self> {
        read(request, state, state.options.body_max_bytes)
            .await
            .map(Self)
    }
}

impl<T: DeserializeOwned + Send + 'static> FromRequest<State> for Batch<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &State) -> Outcome<Self> {
        read(request, state, state.options.batch_max_bytes)
            .await
            .map(Self)
    }
}

impl<T: DeserializeOwned + Default + Send + 'static> FromRequest<State> for Maybe<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &State) -> Outcome<Self> {
        let untyped = !request.headers().contains_key(header::CONTENT_TYPE);
        if untyped && request.body().is_end_stream() {
            return Ok(Self(T::default()));
        }
        let given = read::<Option<T>>(request, state, state.options.body_max_bytes).await?;
        Ok(Self(given.unwrap_or_default()))
    }
}

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        axum::Json(self.0).into_response()
    }
}

async fn read<T: DeserializeOwned + Send + 'static>(
    request: Request,
    state: &State,
    max: usize,
) -> Outcome<T> {
    let (parts, body) = request.into_parts();
    check_type(&parts.headers)?;
    check_length(&parts.headers, max)?;
    let patience = state.options.body_timeout;
    let taken = parts.extensions.get::<Taken>();
    let Ok(bytes) = tokio::time::timeout(patience, collect(body, max, taken)).await else {
        return Err(Refusal::of(
            Code::BodyTooSlow,
            format!("the body must arrive within {patience:?}"),
        ));
    };
    let bytes = bytes?;
    if bytes.len() < LARGE {
        return parse(&bytes);
    }
    // It takes long enough to hold up others on this thread.
    let parsed = tokio::task::spawn_blocking(move || parse(&bytes)).await;
    parsed.unwrap_or_else(|_| Err(Refusal::of(Code::Internal, "reading the body broke off")))
}

fn check_type(headers: &HeaderMap) -> Outcome<()> {
    let given = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let kind = given
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .trim();
    if kind.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(Refusal::of(
        Code::UnsupportedMediaType,
        "send the header `Content-Type: application/json`",
    ))
}

fn check_length(headers: &HeaderMap, max: usize) -> Outcome<()> {
    let length = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok());
    match length.and_then(|text| text.parse::<u64>().ok()) {
        Some(length) if length > max as u64 => Err(too_large(max)),
        _ => Ok(()),
    }
}

async fn collect(body: Body, max: usize, taken: Option<&Taken>) -> Outcome<Bytes> {
    let mut body = Limited::new(body, max);
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            if error.is::<LengthLimitError>() {
                too_large(max)
            } else {
                Refusal::of(Code::MalformedJson, "the body broke off")
            }
        })?;
        if let Ok(data) = frame.into_data() {
            if let Some(taken) = taken {
                taken.arrived(data.len())?;
            }
            all.extend_from_slice(&data);
        }
    }
    Ok(all.freeze())
}

fn too_large(max: usize) -> Refusal {
    Refusal::of(
        Code::BodyTooLarge,
        format!("the body of this route may have at most {max} bytes"),
    )
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Outcome<T> {
    json::scan(bytes).map_err(|problem| refusal::of_json("", &problem))?;
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let mut track = Track::new();
    let tracked = serde_path_to_error::Deserializer::new(&mut reader, &mut track);
    let value = T::deserialize(Strict(tracked)).map_err(|inner| {
        let path = track.path().to_string();
        // A value of another kind than was expected can look like no value at all: only the whole document tells.
        if inner.is_data() || serde_json::from_slice::<IgnoredAny>(bytes).is_ok() {
            let path = if path == "." {
                String::new()
            } else {
                pointer(&path)
            };
            Refusal::invalid(path, inner.to_string())
        } else {
            Refusal::of(Code::MalformedJson, inner.to_string())
        }
    })?;
    reader
        .end()
        .map_err(|error| Refusal::of(Code::MalformedJson, error.to_string()))?;
    Ok(value)
}
