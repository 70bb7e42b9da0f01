//! One run of a client command: its client, key and output. Turns client errors into messages and exit codes.

use crate::command_error::{self, CommandError, CommandResult};
use crate::connection::{Connection, ResolvedConnection};
use crate::exit::{Exit, Failure};
use crate::local_data_dir::LocalDataDir;
use crate::output::{Output, OutputFlags};
use leasehold_client::api::key::{Key, Scope};
use leasehold_client::api::{Code, Problem};
use leasehold_client::{Client, ClientError};
use std::cell::OnceCell;

/// The context of a client command.
pub struct Session {
    /// The API client.
    pub client: Client,
    /// The URL of the server, or the path of its socket.
    pub server: String,
    /// The output.
    pub out: Output,
    key_from: Option<String>,
    local: Option<LocalDataDir>,
    me: OnceCell<Key>,
}

impl Session {
    /// Resolves the server and the key. Sends nothing, except a health check if there is no key.
    ///
    /// # Errors
    /// Fails if a flag is invalid or there is no key.
    pub async fn open(connection: &Connection, output: &OutputFlags) -> Result<Self, Failure> {
        let ResolvedConnection {
            client,
            server,
            key_from,
            local,
        } = connection.resolve()?;
        let session = Self {
            client,
            server,
            out: Output::new(output),
            key_from,
            local,
            me: OnceCell::new(),
        };
        if session.key_from.is_none() {
            let health = session.client.healthy().await;
            return Err(match health {
                Err(error @ ClientError::Unreachable(_)) => session.failure(error),
                _ => session.no_key(),
            });
        }
        Ok(session)
    }

    /// Creates a session from an existing client.
    pub fn with(client: Client, server: impl Into<String>, out: Output) -> Self {
        Self {
            client,
            server: server.into(),
            out,
            key_from: None,
            local: None,
            me: OnceCell::new(),
        }
    }

    /// The key in use; cached.
    pub(crate) async fn me(&self) -> CommandResult<&Key> {
        if let Some(key) = self.me.get() {
            return Ok(key);
        }
        let key = self.client.key_me().await?;
        Ok(self.me.get_or_init(|| key))
    }

    /// Whether the key is an administrator key.
    pub(crate) async fn is_admin(&self) -> CommandResult<bool> {
        Ok(self.me().await?.scope == Scope::Admin)
    }

    /// Converts the result of a command into a failure with message and exit code; `None` if standard output was closed.
    ///
    /// # Errors
    /// Returns the failure of the command.
    pub fn finish<T>(&self, outcome: CommandResult<T>) -> Result<Option<T>, Failure> {
        command_error::finish(outcome.map_err(|error| match error {
            CommandError::Client(client) => self.failure(client).into(),
            other => other,
        }))
    }

    fn no_key(&self) -> Failure {
        let server = &self.server;
        let message = format!(
            "no API key for {server}; set LEASEHOLD_KEY or --key-file, or leave out --server to use the server and the key of \
             a data directory (--data-dir)"
        );
        Failure::new(Exit::Denied, message)
    }

    /// Converts a client error into a failure.
    pub fn failure(&self, error: ClientError) -> Failure {
        let server = &self.server;
        match error {
            ClientError::Problem(problem) => self.problem_failure(&problem),
            ClientError::Unreachable(why) if why.contains("certificate") => {
                Failure::usage(format!(
                    "the TLS certificate of {server} is not trusted ({}); set --ca-file to its CA, and --server to a name \
                     in the certificate",
                    last_cause(&why)
                ))
            }
            ClientError::Unreachable(why) => {
                let why = last_cause(&why);
                match &self.local {
                    Some(local) if is_refused(why) => local.not_running(why),
                    Some(_) => Failure::new(
                        Exit::Unavailable,
                        format!(
                            "no answer from the server on the socket {server} ({why}); retry later"
                        ),
                    ),
                    None => Failure::new(
                        Exit::Unavailable,
                        format!(
                            "cannot reach the server at {server} ({why}); start it with `leasehold serve`, or check --server"
                        ),
                    ),
                }
            }
            ClientError::Unexpected(why) => Failure::new(
                Exit::Failed,
                format!(
                    "unexpected response from {server}: not a Leasehold server, or another version ({why}); check --server"
                ),
            ),
            ClientError::Setup(why) => Failure::usage(why),
        }
    }

    fn problem_failure(&self, problem: &Problem) -> Failure {
        let exit = exit_for(problem.code);
        let message = match problem.code {
            Code::Unauthenticated => format!(
                "{} rejected the API key from {}: {}; set --server and LEASEHOLD_KEY, or create a key with `leasehold admin-key`",
                self.server,
                self.key_from.as_deref().unwrap_or("this session"),
                rejection(problem),
            ),
            Code::Forbidden => format!(
                "access denied for the API key from {} ({}); use an administrator key",
                self.key_from.as_deref().unwrap_or("this session"),
                problem.detail
            ),
            _ => {
                let path = problem.path.as_deref().filter(|path| !path.is_empty());
                let path = path.map(|path| format!("{path}: ")).unwrap_or_default();
                // The detail names it in most cases.
                let held = problem.held_by.as_deref();
                let held = held.filter(|by| !problem.detail.contains(by));
                let held = held.map(|by| format!(", held by {by}")).unwrap_or_default();
                let retry = problem.retry_after;
                let retry = retry
                    .map(|seconds| format!("; retry in {seconds} s"))
                    .unwrap_or_default();
                let code = problem.code.as_str();
                format!("{path}{}{held} ({code}){retry}", problem.detail)
            }
        };
        Failure::new(exit, message)
    }
}

/// Maps a problem code to an exit code by its HTTP status.
pub(crate) fn exit_for(code: Code) -> Exit {
    match code.status() {
        401 | 403 => Exit::Denied,
        404 => Exit::NotFound,
        408 | 429 | 503 | 504 => Exit::Unavailable,
        409 => Exit::Conflict,
        400 | 413 | 415 | 422 => Exit::Usage,
        _ => Exit::Failed,
    }
}

/// Whether the cause says that no process listens on the socket: the connection is refused, or its file was removed.
fn is_refused(cause: &str) -> bool {
    let refused = ["Connection refused", "No such file"];
    refused.iter().any(|text| cause.starts_with(text))
}

/// The last cause of an error chain, without the OS error number.
fn last_cause(why: &str) -> &str {
    let last = why.rsplit(": ").next().unwrap_or(why);
    last.split(" (os error").next().unwrap_or(last)
}
/// Why the server rejected a key. Only the holder of a key that expired is told so.
fn rejection(problem: &Problem) -> &str {
    let expired = problem.detail.split(';').next();
    let expired = expired.filter(|text| text.contains("expired"));
    expired.unwrap_or("revoked, or a key of another server")
}
