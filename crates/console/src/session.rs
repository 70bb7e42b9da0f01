//! One run of a client command: its server, its key and where it prints. Says to people what the server said.

use crate::connection::{Connection, Found};
use crate::exit::{Exit, Failure};
use crate::output::{Output, OutputFlags};
use crate::trouble::{self, Outcome, Trouble};
use leasehold_client::api::key::{Key, Scope};
use leasehold_client::api::{Code, Problem};
use leasehold_client::{Client, ClientError};
use std::cell::OnceCell;

/// A command's surroundings.
pub struct Session {
    /// The server.
    pub client: Client,
    /// Where it is.
    pub server: String,
    /// What is printed, and how.
    pub out: Output,
    key_from: Option<String>,
    me: OnceCell<Key>,
}

impl Session {
    /// Finds the server and the key. Nothing is sent yet, unless there is no key: then whether there is a server at all.
    ///
    /// # Errors
    /// If a flag is wrong, or there is no key.
    pub async fn open(connection: &Connection, output: &OutputFlags) -> Result<Self, Failure> {
        let Found {
            client,
            server,
            key_from,
        } = connection.find()?;
        let session = Self {
            client,
            server,
            out: Output::new(output),
            key_from,
            me: OnceCell::new(),
        };
        if session.key_from.is_none() {
            let here = session.client.healthy().await;
            return Err(match here {
                Err(error @ ClientError::Unreachable(_)) => session.failure(error),
                _ => session.no_key(),
            });
        }
        Ok(session)
    }

    /// A session with what is at hand.
    pub fn with(client: Client, server: impl Into<String>, out: Output) -> Self {
        Self {
            client,
            server: server.into(),
            out,
            key_from: None,
            me: OnceCell::new(),
        }
    }

    /// The key in use, asked for once.
    pub(crate) async fn me(&self) -> Outcome<&Key> {
        if let Some(key) = self.me.get() {
            return Ok(key);
        }
        let key = self.client.key_me().await?;
        Ok(self.me.get_or_init(|| key))
    }

    /// Whether the key opens everything.
    pub(crate) async fn is_admin(&self) -> Outcome<bool> {
        Ok(self.me().await?.scope == Scope::Admin)
    }

    /// How a command ended, as people read it.
    ///
    /// # Errors
    /// If it did not end well.
    pub fn told<T>(&self, outcome: Outcome<T>) -> Result<Option<T>, Failure> {
        trouble::told(outcome.map_err(|trouble| match trouble {
            Trouble::Client(error) => self.failure(error).into(),
            other => other,
        }))
    }

    fn no_key(&self) -> Failure {
        let server = &self.server;
        let message = format!(
            "there is no key for {server}; run this where `leasehold serve` runs, name its folder with --data-dir, \
             or set LEASEHOLD_KEY"
        );
        Failure::new(Exit::Denied, message)
    }

    /// What the server, or the way to it, came to.
    pub fn failure(&self, error: ClientError) -> Failure {
        let server = &self.server;
        match error {
            ClientError::Problem(problem) => self.refused(&problem),
            ClientError::Unreachable(why) if why.contains("certificate") => {
                Failure::usage(format!(
                    "the certificate of {server} is not trusted ({}); name its authority with --ca-file, and the server with --server \
                     as its certificate does",
                    short(&why)
                ))
            }
            ClientError::Unreachable(why) => Failure::new(
                Exit::Unavailable,
                format!(
                    "no server answers at {server} ({}); start one with `leasehold serve`, or name another with --server",
                    short(&why)
                ),
            ),
            ClientError::Unexpected(why) => Failure::new(
                Exit::Failed,
                format!(
                    "what answers at {server} is no Leasehold of this version ({why}); look at --server"
                ),
            ),
            ClientError::Setup(why) => Failure::usage(why),
        }
    }

    fn refused(&self, problem: &Problem) -> Failure {
        let exit = exit_of(problem.code);
        let message = match problem.code {
            Code::Unauthenticated => format!(
                "{} does not know the key of {}; it was revoked, or is another server's: set LEASEHOLD_KEY or --key-file, \
                 or make one with `leasehold admin-key`",
                self.server,
                self.key_from.as_deref().unwrap_or("this call"),
            ),
            Code::Forbidden => format!(
                "the key of {} does not open this ({}); use an administrator's key",
                self.key_from.as_deref().unwrap_or("this call"),
                problem.detail
            ),
            _ => {
                let place = problem.path.as_deref().filter(|path| !path.is_empty());
                let place = place.map(|path| format!("{path}: ")).unwrap_or_default();
                let held = problem.held_by.as_deref();
                let held = held.map(|by| format!(", held by {by}")).unwrap_or_default();
                let again = problem.retry_after;
                let again = again
                    .map(|seconds| format!("; try again in {seconds} s"))
                    .unwrap_or_default();
                let code = problem.code.as_str();
                format!("{place}{}{held} ({code}){again}", problem.detail)
            }
        };
        Failure::new(exit, message)
    }
}

/// The exit code for each way a call can go wrong, by its HTTP status.
pub(crate) fn exit_of(code: Code) -> Exit {
    match code.status() {
        401 | 403 => Exit::Denied,
        404 => Exit::NotFound,
        408 | 429 | 503 | 504 => Exit::Unavailable,
        409 => Exit::Conflict,
        400 | 413 | 415 | 422 => Exit::Usage,
        _ => Exit::Failed,
    }
}

/// The last cause, which says most in the fewest words.
fn short(why: &str) -> &str {
    let last = why.rsplit(": ").next().unwrap_or(why);
    last.split(" (os error").next().unwrap_or(last)
}
