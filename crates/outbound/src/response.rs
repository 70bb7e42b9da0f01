//! Converts a response to a node's output, or to an error that says whether to retry.

use crate::call::CallError;
use leasehold_core::limits::{JOB_WAIT_MAX_DAYS, PAYLOAD_MAX_BYTES};
use leasehold_core::{JsonText, json};
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER, SET_COOKIE};
use reqwest::{Response, StatusCode};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Characters of an error response's body that the error repeats.
const BODY_EXCERPT_MAX_CHARS: usize = 500;

#[derive(Serialize)]
struct Output {
    status: u16,
    headers: BTreeMap<String, String>,
    body: Option<JsonText>,
}

/// Reads the whole response.
pub(crate) async fn read(mut response: Response) -> Result<JsonText, CallError> {
    let status = response.status();
    let headers = response.headers().clone();
    let mut bytes = Vec::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| CallError::transport(&error))?
    {
        if bytes.len() + chunk.len() > PAYLOAD_MAX_BYTES {
            return Err(CallError::permanent(format!(
                "response {status} has more than {PAYLOAD_MAX_BYTES} bytes"
            )));
        }
        bytes.extend_from_slice(&chunk);
    }
    if !status.is_success() {
        return Err(status_error(status, &headers, &bytes));
    }
    let output = Output {
        status: status.as_u16(),
        headers: headers_without_cookies(&headers),
        body: body(status, &headers, bytes)?,
    };
    let unusable = |what: &str| CallError::permanent(format!("response {status} {what}"));
    let text = JsonText::of(&output).map_err(|_| unusable("cannot be converted to JSON"))?;
    json::parse(text.as_str().as_bytes(), PAYLOAD_MAX_BYTES)
        .map_err(|problem| unusable(&format!("cannot be stored: {problem}")))?;
    Ok(text)
}

fn status_error(status: StatusCode, headers: &HeaderMap, bytes: &[u8]) -> CallError {
    let text: String = String::from_utf8_lossy(bytes)
        .chars()
        .filter(|char| !char.is_control())
        .take(BODY_EXCERPT_MAX_CHARS)
        .collect();
    let message = match text.trim() {
        "" => format!("response {status}"),
        text => format!("response {status}: {text}"),
    };
    let is_retryable = matches!(
        status,
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS
    ) || (status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED);
    CallError {
        message,
        is_retryable,
        retry_after: retry_after(headers).filter(|_| is_retryable),
    }
}

/// Parses seconds only; a date would depend on the local clock.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: u64 = headers
        .get(RETRY_AFTER)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()?;
    let longest = u64::from(JOB_WAIT_MAX_DAYS) * 86_400;
    Some(Duration::from_secs(seconds.min(longest)))
}

/// Returns all headers except cookies, which are secrets.
fn headers_without_cookies(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut shown: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in headers.iter().filter(|(name, _)| *name != SET_COOKIE) {
        let value = String::from_utf8_lossy(value.as_bytes());
        shown
            .entry(name.as_str().to_owned())
            .and_modify(|before| {
                before.push_str(", ");
                before.push_str(&value);
            })
            .or_insert_with(|| value.into_owned());
    }
    shown
}

/// Returns a JSON body unchanged, a text body as a JSON string, and an empty body as null.
fn body(
    status: StatusCode,
    headers: &HeaderMap,
    bytes: Vec<u8>,
) -> Result<Option<JsonText>, CallError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let text = String::from_utf8(bytes).map_err(|_| {
        CallError::permanent(format!("response {status} is neither JSON nor UTF-8 text"))
    })?;
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let kind = kind
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .trim();
    let is_json = kind.eq_ignore_ascii_case("application/json")
        || kind.to_ascii_lowercase().ends_with("+json");
    let parsed = if is_json {
        JsonText::parse(&text)
    } else {
        JsonText::of(&text)
    };
    parsed.map(Some).map_err(|error| {
        CallError::permanent(format!(
            "response {status} has an invalid JSON body: {error}"
        ))
    })
}
