//! The fail point of computations: a test can make the input of a request abort the process. Release builds have none.

use leasehold_core::JsonText;

/// The environment variable with a text: the process aborts when it computes the input of a request whose params contain it.
pub const VARIABLE: &str = "LEASEHOLD_FAILPOINT_PARAMS";

/// Aborts the process if the params contain the text of the environment variable.
#[cfg(debug_assertions)]
pub fn reach(params: &JsonText) {
    use std::sync::OnceLock;

    static WANTED: OnceLock<Option<String>> = OnceLock::new();
    let wanted = WANTED.get_or_init(|| std::env::var(VARIABLE).ok());
    if let Some(wanted) = wanted
        && params.as_str().contains(wanted)
    {
        std::process::abort();
    }
}

/// Aborts the process if the params contain the text of the environment variable.
#[cfg(not(debug_assertions))]
pub fn reach(_params: &JsonText) {}
