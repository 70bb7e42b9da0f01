//! Extractors of request bodies: bounded in size and time, strict JSON. An error names the invalid field.

use crate::api_error::{self, ApiError, ApiResult, pointer};
use crate::load_shed::CallPermit;
use crate::state::State;
use crate::strict::StrictDeserializer;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bytes::BytesMut;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use leasehold_api::Code;
use leasehold_core::json;
use leasehold_core::limits::{GRAPH_MAX_MEMORY_BYTES, JOB_MAX_BATCH};
use leasehold_store::run_off_thread;
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_path_to_error::Track;

/// An ordinary JSON body, or a JSON response.
pub(crate) struct Json<T>(pub(crate) T);

/// What is named in an error if reading a body was interrupted.
const READ_BODY: &str = "read_body";

/// Items above which a batch is not parsed.
const BATCH_PARSE_MAX_ITEMS: usize = 2 * JOB_MAX_BATCH;

/// A JSON body with a batch, which may be larger.
pub(crate) struct BatchJson<T>(pub(crate) T);

/// A JSON body with a graph: as large as a batch, but bounded in the memory that it takes once it is parsed.
pub(crate) struct GraphJson<T>(pub(crate) T);

/// An ordinary JSON body that may be absent or `null`; then the defaults apply.
pub(crate) struct OptionalJson<T>(pub(crate) T);

impl<T: DeserializeOwned + Send + 'static> FromRequest<State> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &State) -> ApiResult<Self> {
        read(request, state, state.options.body_max_bytes)
            .await
            .map(Self)
    }
}

impl<T: DeserializeOwned + Send + 'static> FromRequest<State> for BatchJson<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &State) -> ApiResult<Self> {
        let body = ReceivedBody::receive(request, state, state.options.batch_max_bytes).await?;
        body.parse_with(parse_batch).await.map(Self)
    }
}

impl<T: DeserializeOwned + Send + 'static> FromRequest<State> for GraphJson<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &State) -> ApiResult<Self> {
        let body = ReceivedBody::receive(request, state, state.options.batch_max_bytes).await?;
        let bytes = body.bytes.clone();
        let count = move || Ok(json::tree_bytes(&bytes));
        let memory = run_off_thread(READ_BODY, body.bytes.len(), count).await?;
        if memory > GRAPH_MAX_MEMORY_BYTES {
            let detail = format!(
                "takes about {memory} bytes in memory, of {GRAPH_MAX_MEMORY_BYTES} allowed; use fewer small objects and arrays"
            );
            return Err(ApiError::invalid("", detail));
        }
        body.count(memory)?;
        body.parse().await.map(Self)
    }
}

impl<T: DeserializeOwned + Default + Send + 'static> FromRequest<State> for OptionalJson<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &State) -> ApiResult<Self> {
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
) -> ApiResult<T> {
    ReceivedBody::receive(request, state, max)
        .await?
        .parse()
        .await
}

/// The bytes of a body, and what counts them until the call ends.
struct ReceivedBody {
    bytes: Bytes,
    permit: Option<CallPermit>,
}

impl ReceivedBody {
    /// Receives the body of a call, of at most `max` bytes.
    async fn receive(request: Request, state: &State, max: usize) -> ApiResult<Self> {
        let (parts, body) = request.into_parts();
        check_type(&parts.headers)?;
        check_length(&parts.headers, max)?;
        let limit = state.options.body_timeout;
        let permit = parts.extensions.get::<CallPermit>().cloned();
        let collected = collect(body, max, permit.as_ref());
        let Ok(bytes) = tokio::time::timeout(limit, collected).await else {
            return Err(ApiError::new(
                Code::BodyTooSlow,
                format!("the body did not arrive within {limit:?}"),
            ));
        };
        let bytes = bytes?;
        Ok(Self { bytes, permit })
    }

    /// Counts more bytes than those received, until the call ends.
    fn count(&self, bytes: usize) -> ApiResult<()> {
        self.permit
            .as_ref()
            .map_or(Ok(()), |permit| permit.count_body_bytes(bytes))
    }

    async fn parse<T: DeserializeOwned + Send + 'static>(self) -> ApiResult<T> {
        self.parse_with(parse).await
    }

    async fn parse_with<T: Send + 'static>(self, parse: fn(&[u8]) -> ApiResult<T>) -> ApiResult<T> {
        let bytes = self.bytes;
        run_off_thread(READ_BODY, bytes.len(), move || Ok(parse(&bytes))).await?
    }
}

/// Parses a batch, unless it has far more items than any operation takes: `{"kind":""}` takes twenty times its bytes once it is parsed. The
/// operation rejects fewer items with the exact limit.
fn parse_batch<T: DeserializeOwned>(bytes: &[u8]) -> ApiResult<T> {
    let items = count_items(bytes);
    if items > BATCH_PARSE_MAX_ITEMS {
        let detail = format!("has {items} items, and a batch has at most {JOB_MAX_BATCH}");
        return Err(ApiError::invalid("", detail));
    }
    parse(bytes)
}

/// Counts the items of the arrays in an object, one more at most if an array is empty. Looks only at brackets and commas.
fn count_items(bytes: &[u8]) -> usize {
    let (mut depth, mut items, mut rest) = (0usize, 0, bytes);
    while let [byte, ..] = rest {
        let mut length = 1;
        match byte {
            b'"' => length = json::string_length(rest),
            b'[' | b'{' => {
                depth += 1;
                items += usize::from(depth == 2);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 2 => items += 1,
            _ => {}
        }
        rest = &rest[length..];
    }
    items
}

fn check_type(headers: &HeaderMap) -> ApiResult<()> {
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
    Err(ApiError::new(
        Code::UnsupportedMediaType,
        "send the header `Content-Type: application/json`",
    ))
}

fn check_length(headers: &HeaderMap, max: usize) -> ApiResult<()> {
    let length = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok());
    match length.and_then(|text| text.parse::<u64>().ok()) {
        Some(length) if length > max as u64 => Err(too_large(max)),
        _ => Ok(()),
    }
}

async fn collect(body: Body, max: usize, permit: Option<&CallPermit>) -> ApiResult<Bytes> {
    let mut body = Limited::new(body, max);
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            if error.is::<LengthLimitError>() {
                too_large(max)
            } else {
                ApiError::new(
                    Code::MalformedJson,
                    "the body is incomplete, or its chunks are malformed",
                )
            }
        })?;
        if let Ok(data) = frame.into_data() {
            if let Some(permit) = permit {
                permit.count_body_bytes(data.len())?;
            }
            all.extend_from_slice(&data);
        }
    }
    Ok(all.freeze())
}

fn too_large(max: usize) -> ApiError {
    ApiError::new(
        Code::BodyTooLarge,
        format!("the body of this route must not exceed {max} bytes"),
    )
}

/// Parses a body.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> ApiResult<T> {
    json::scan(bytes).map_err(|problem| api_error::from_json("", &problem))?;
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let mut track = Track::new();
    let tracked = serde_path_to_error::Deserializer::new(&mut reader, &mut track);
    let value = T::deserialize(StrictDeserializer(tracked)).map_err(|inner| {
        let path = track.path().to_string();
        // serde_json reports some values of the wrong type as syntax errors; parsing the whole document tells the two apart.
        if inner.is_data() || serde_json::from_slice::<IgnoredAny>(bytes).is_ok() {
            let path = if path == "." {
                String::new()
            } else {
                pointer(&path)
            };
            ApiError::invalid(path, inner.to_string())
        } else {
            ApiError::new(Code::MalformedJson, inner.to_string())
        }
    })?;
    reader
        .end()
        .map_err(|error| ApiError::new(Code::MalformedJson, error.to_string()))?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_api::job::NewJobs;

    #[test]
    fn items_are_counted_without_a_parser() {
        for (text, items) in [
            (r#"{"worker":"w","claims":[]}"#, 1),
            (r#"{"jobs":[{"a":[1,2],"b":{"c":1,"d":2}},2,"x,y\",z"]}"#, 3),
            (r#"{"jobs":[1,2],"more":[3]}"#, 3),
            (r#"[1,2,3]"#, 0),
            ("]]]{", 0),
        ] {
            assert_eq!(count_items(text.as_bytes()), items, "{text}");
        }
    }

    #[test]
    fn batch_with_far_too_many_items_is_not_parsed() {
        let batch = |items: usize| format!(r#"{{"jobs":[{}]}}"#, vec!["{}"; items].join(","));
        let text = |items: usize| {
            let parsed = parse_batch::<NewJobs>(batch(items).as_bytes());
            parsed.err().map(|error| format!("{error:?}"))
        };
        let most = text(BATCH_PARSE_MAX_ITEMS);
        assert!(most.is_some_and(|error| error.contains("kind")));
        let more = text(BATCH_PARSE_MAX_ITEMS + 1);
        assert!(more.is_some_and(|error| error.contains("20001 items")));
    }
}
