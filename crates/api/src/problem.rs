//! Problems as RFC 9457 has them, with a stable code each. `docs/errors/` has a page for every code.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What went wrong, as `application/problem+json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// Where the code is explained, relative to the server.
    #[serde(rename = "type")]
    #[schema(format = "uri-reference")]
    pub kind: String,
    /// The code in words.
    pub title: String,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    pub status: u16,
    /// The code: stable, for programs.
    pub code: Code,
    /// What went wrong this time, for people.
    pub detail: String,
    /// What is wrong: a JSON pointer into the body, or the name of a parameter or header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The request that holds what was asked for, where one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<String>,
    /// How many seconds to wait before trying again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
}

/// Hands every code to the macro of this name, a row each: name, text, status and title.
#[macro_export]
macro_rules! problem_codes {
    ($rows:ident) => {
        $rows! {
            /// The body is no JSON.
            MalformedJson = "malformed_json", 400, "The body is not valid JSON";
            /// A parameter of the path, the query or a header is not acceptable.
            InvalidParameter = "invalid_parameter", 400, "A parameter is not acceptable";
            /// No key, or one that opens nothing.
            Unauthenticated = "unauthenticated", 401, "A valid key is needed";
            /// The key does not open this.
            Forbidden = "forbidden", 403, "The key does not allow this";
            /// It is not there, or not for this key to see.
            NotFound = "not_found", 404, "There is no such thing";
            /// The route has other methods.
            MethodNotAllowed = "method_not_allowed", 405, "The route does not have this method";
            /// The body did not arrive in time.
            BodyTooSlow = "body_too_slow", 408, "The body did not arrive in time";
            /// Something else has that name.
            NameTaken = "name_taken", 409, "The name is taken";
            /// The idempotency key is held with other params.
            IdempotencyConflict = "idempotency_conflict", 409, "The idempotency key is held by another request";
            /// The definition has no version yet.
            NotPublished = "not_published", 409, "The definition has no published version";
            /// Only a FAILED request can be redriven.
            NotFailed = "not_failed", 409, "The request has not failed";
            /// An earlier redrive has not ended.
            AlreadyRedriven = "already_redriven", 409, "A redrive of the request is under way";
            /// It has ended and cannot be cancelled.
            AlreadyFinished = "already_finished", 409, "It has ended already";
            /// A worker has the job.
            JobRunning = "job_running", 409, "A worker has the job";
            /// It ends with its node or its execution.
            JobOfGraph = "job_of_graph", 409, "The job is a node of a graph";
            /// The body has more bytes than the route takes.
            BodyTooLarge = "body_too_large", 413, "The body is too large";
            /// The body is not said to be JSON.
            UnsupportedMediaType = "unsupported_media_type", 415, "The body must be application/json";
            /// The body is JSON, and not what the route takes.
            Invalid = "invalid", 422, "The body is not acceptable";
            /// The workspace asks too often.
            RateLimited = "rate_limited", 429, "Too many requests of this workspace";
            /// The workspace has as many waiting as it may.
            BacklogFull = "backlog_full", 429, "The workspace has too much waiting";
            /// The key has as many streams open as it may.
            TooManyStreams = "too_many_streams", 429, "Too many streams are open";
            /// A fault of the server.
            Internal = "internal", 500, "The server failed";
            /// The store does not answer.
            StoreUnavailable = "store_unavailable", 503, "The store does not answer";
            /// The engine does not answer.
            EngineUnavailable = "engine_unavailable", 503, "The engine does not answer";
            /// The server does as much as it can.
            Overloaded = "overloaded", 503, "The server is too busy";
            /// It took too long; whether it was done is not known.
            DeadlineExceeded = "deadline_exceeded", 504, "It took too long";
        }
    };
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $status:literal, $title:literal;)*) => {
        /// Every way a call can go wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum Code {
            $($(#[$doc])* $name,)*
        }

        impl Code {
            /// All of them.
            pub const ALL: &[Code] = &[$(Code::$name),*];

            /// Its name in JSON and in addresses.
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$name => $text,)* }
            }

            /// The HTTP status it comes with.
            pub const fn status(self) -> u16 {
                match self { $(Code::$name => $status,)* }
            }

            /// The code in words.
            pub const fn title(self) -> &'static str {
                match self { $(Code::$name => $title,)* }
            }
        }
    };
}

problem_codes!(codes);

impl Problem {
    /// A problem of this code.
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

    /// Names what is wrong.
    #[must_use]
    pub fn at(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Says when to try again.
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
    fn a_code_is_written_as_its_name() {
        for code in Code::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        }
    }

    #[test]
    fn a_problem_is_read_back() {
        let problem = Problem::new(Code::Invalid, "too long")
            .at("/name")
            .retry_after(3);
        let text = serde_json::to_string(&problem).unwrap();
        assert!(text.contains(r#""type":"/errors/invalid""#), "{text}");
        assert_eq!(serde_json::from_str::<Problem>(&text).unwrap(), problem);
    }
}
