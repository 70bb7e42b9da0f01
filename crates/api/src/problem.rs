//! Problem documents (RFC 9457), each with a stable code. `docs/errors/` has a page for every code.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An error, as `application/problem+json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// Link to the page that explains the code, relative to the server.
    #[serde(rename = "type")]
    #[schema(format = "uri-reference")]
    pub kind: String,
    /// Short description of the code.
    pub title: String,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    pub status: u16,
    /// The code: stable, for programs.
    pub code: Code,
    /// What went wrong in this call, for people.
    pub detail: String,
    /// The invalid value: a JSON pointer into the body, or the name of a parameter or header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The request that causes the conflict, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<String>,
    /// Seconds to wait before a retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
}

/// Calls the macro of this name with one row per code: name, text, status and title.
#[macro_export]
macro_rules! problem_codes {
    ($rows:ident) => {
        $rows! {
            /// The body is not valid JSON.
            MalformedJson = "malformed_json", 400, "The body is not valid JSON";
            /// A path or query parameter or a header is invalid.
            InvalidParameter = "invalid_parameter", 400, "Invalid parameter";
            /// The key is missing, unknown, revoked or expired.
            Unauthenticated = "unauthenticated", 401, "API key missing or invalid";
            /// The key has no access to this route.
            Forbidden = "forbidden", 403, "The key has no access to this";
            /// The key may only read.
            ReadOnlyKey = "read_only_key", 403, "The key is read-only";
            /// The graphs of the workspace may not use the queue.
            QueueNotShared = "queue_not_shared", 403, "The queue is not shared with the workspace";
            /// The object does not exist, or the key has no access to it.
            NotFound = "not_found", 404, "Not found";
            /// The route does not support this method.
            MethodNotAllowed = "method_not_allowed", 405, "Method not allowed";
            /// The body did not arrive in time.
            BodyTooSlow = "body_too_slow", 408, "The body did not arrive in time";
            /// The name is already in use.
            NameTaken = "name_taken", 409, "The name is already in use";
            /// The idempotency key is held by a request with other content.
            IdempotencyConflict = "idempotency_conflict", 409, "The idempotency key is held by another request";
            /// The definition has no published version.
            NotPublished = "not_published", 409, "The definition has no published version";
            /// The request cannot be redriven: it is not FAILED.
            NotFailed = "not_failed", 409, "The request has not failed";
            /// An earlier redrive of the request has not ended.
            AlreadyRedriven = "already_redriven", 409, "The request is already being redriven";
            /// The request or job has ended and cannot be cancelled.
            AlreadyFinished = "already_finished", 409, "Already finished";
            /// The job is running and cannot be cancelled.
            JobRunning = "job_running", 409, "The job is running";
            /// The job belongs to a graph and cannot be cancelled alone.
            JobOfGraph = "job_of_graph", 409, "The job belongs to a graph";
            /// The key is the last valid administrator key.
            LastAdminKey = "last_admin_key", 409, "The last administrator key";
            /// The key cannot be rotated: it is not valid, or it was rotated already.
            RotationRefused = "rotation_refused", 409, "The key cannot be rotated";
            /// The cursor is of a part of the database's history that was lost or left.
            CursorGone = "cursor_gone", 410, "The cursor is no longer valid";
            /// The body exceeds the size limit of the route.
            BodyTooLarge = "body_too_large", 413, "The body is too large";
            /// The `Content-Type` is not JSON.
            UnsupportedMediaType = "unsupported_media_type", 415, "The body must be application/json";
            /// The body is JSON, but invalid for the route.
            Invalid = "invalid", 422, "Invalid body";
            /// The workspace or the key exceeds its rate limit.
            RateLimited = "rate_limited", 429, "Rate limit exceeded";
            /// The workspace has reached its maximum of pending requests.
            BacklogFull = "backlog_full", 429, "The backlog of the workspace is full";
            /// The open requests of the workspace, or the open jobs of the key, have reached their maximum of bytes.
            QuotaExceeded = "quota_exceeded", 429, "The quota of open bytes is exceeded";
            /// The key or the server has reached its maximum of open streams.
            TooManyStreams = "too_many_streams", 429, "Too many open streams";
            /// The server has a bug or an unexpected failure.
            Internal = "internal", 500, "Internal server error";
            /// The store is unavailable.
            StoreUnavailable = "store_unavailable", 503, "The store is unavailable";
            /// The engine is unavailable.
            EngineUnavailable = "engine_unavailable", 503, "The engine is unavailable";
            /// The server has reached a limit or is stopping.
            Overloaded = "overloaded", 503, "The server is overloaded";
            /// The call took too long; it is unknown whether it was carried out.
            DeadlineExceeded = "deadline_exceeded", 504, "The call took too long";
        }
    };
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $status:literal, $title:literal;)*) => {
        /// The code of a problem.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum Code {
            $($(#[$doc])* $name,)*
        }

        impl Code {
            /// All codes.
            pub const ALL: &[Code] = &[$(Code::$name),*];

            /// Returns the code's name in JSON and URLs.
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$name => $text,)* }
            }

            /// Returns the code's HTTP status.
            pub const fn status(self) -> u16 {
                match self { $(Code::$name => $status,)* }
            }

            /// Returns the short description of the code.
            pub const fn title(self) -> &'static str {
                match self { $(Code::$name => $title,)* }
            }
        }
    };
}

problem_codes!(codes);

impl Problem {
    /// Creates a problem with this code.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            kind: format!("/errors/{}", code.as_str()),
            title: code.title().to_owned(),
            status: code.status(),
            code,
            detail: detail.into(),
            path: None,
            held_by: None,
            retry_after: None,
        }
    }

    /// Sets the path of the invalid value.
    #[must_use]
    pub fn at(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Sets the seconds to wait before a retry.
    #[must_use]
    pub fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.path {
            Some(path) => write!(f, "{}: {} ({})", path, self.detail, self.code.as_str()),
            None => write!(f, "{} ({})", self.detail, self.code.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn code_serializes_as_its_name() {
        for code in Code::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        }
    }

    #[test]
    fn problem_round_trips_through_json() {
        let problem = Problem::new(Code::Invalid, "too long")
            .at("/name")
            .retry_after(3);
        let text = serde_json::to_string(&problem).unwrap();
        assert!(text.contains(r#""type":"/errors/invalid""#), "{text}");
        assert_eq!(serde_json::from_str::<Problem>(&text).unwrap(), problem);
    }
}
