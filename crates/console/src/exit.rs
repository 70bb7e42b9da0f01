//! How a command ends when it does not end well: a code for scripts, one line for people.

use std::fmt;

macro_rules! exits {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $meaning:literal;)*) => {
        /// What the exit code says. Zero is not here: it says that all is done.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Exit {
            $($(#[$doc])* $name = $code,)*
        }

        impl Exit {
            /// All of them.
            pub const ALL: &[Exit] = &[$(Exit::$name),*];

            /// The number that the shell sees.
            pub const fn code(self) -> u8 {
                self as u8
            }

            /// What it means, in a sentence.
            pub const fn meaning(self) -> &'static str {
                match self { $(Exit::$name => $meaning,)* }
            }
        }
    };
}

exits! {
    /// A fault.
    Failed = 1, "something failed that should not; the line says what, and it may be a fault of Leasehold's";
    /// The user's slip.
    Usage = 2, "a flag, a file, a setting or a value is wrong; nothing was done, unless the line says what was";
    /// It is not there.
    NotFound = 3, "there is no such workspace, definition, request, job …, or the key does not open it";
    /// The key is missing, wrong or too weak.
    Denied = 4, "there is no key, the server does not know it, or it does not open this";
    /// It is not in the state for it.
    Conflict = 5, "the name is taken, it has ended already, a worker has it …: it is not in the state for this";
    /// Later, maybe.
    Unavailable = 6, "no server, store or engine answers, or it is too busy; worth another try later";
    /// What was watched ended badly.
    RequestFailed = 7, "the request that was watched has failed";
    /// Another process is there.
    InUse = 8, "the port or the data folder belongs to another process";
    /// This program is too old for the store.
    Schema = 9, "the store's schema is newer than this program, or changed behind its back";
}

/// An end that is not a good one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// For scripts.
    pub exit: Exit,
    /// For people: what is wrong, and what to do.
    pub message: String,
}

impl Failure {
    /// An end with this code and this line.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
        }
    }

    /// The user's slip.
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
