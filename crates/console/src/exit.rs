//! Failures of a command: an exit code for scripts and a one-line message for people.

use std::fmt;

macro_rules! exits {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $meaning:literal;)*) => {
        /// The exit codes of failed commands. Zero means success.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Exit {
            $($(#[$doc])* $name = $code,)*
        }

        impl Exit {
            /// Every exit code.
            pub const ALL: &[Exit] = &[$(Exit::$name),*];

            /// The process exit code.
            pub const fn code(self) -> u8 {
                self as u8
            }

            /// The meaning of the code, as on the reference page.
            pub const fn meaning(self) -> &'static str {
                match self { $(Exit::$name => $meaning,)* }
            }
        }
    };
}

exits! {
    /// Unexpected failure.
    Failed = 1, "unexpected failure; the message says what failed, possibly a bug in Leasehold";
    /// Wrong flag, file, setting or value.
    Usage = 2, "invalid flag, file, setting or value; nothing was changed unless the message says so";
    /// The resource does not exist.
    NotFound = 3, "workspace, definition, request, job … not found, or the key has no access to it";
    /// The key is missing, invalid or lacks access.
    Denied = 4, "no API key, an invalid or revoked key, or a key without access";
    /// The resource is in the wrong state.
    Conflict = 5, "conflict with the current state: name taken, already finished, held by a worker …";
    /// The server, store or engine is unavailable.
    Unavailable = 6, "server, store or engine unreachable or overloaded; retry later";
    /// The watched request failed.
    RequestFailed = 7, "the watched request failed";
    /// The port or data directory is in use.
    InUse = 8, "the port or the data directory is in use by another process";
    /// The schema is too new for this program.
    Schema = 9, "the store's schema is too new for this program, or was modified";
}

/// A failed command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// What failed, why, and what to do.
    pub message: String,
}

impl Failure {
    /// Creates a failure.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
        }
    }

    /// Creates a failure with [`Exit::Usage`].
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}
