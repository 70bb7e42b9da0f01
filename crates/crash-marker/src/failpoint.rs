//! The fail points of computations: a test can make the input of a request abort the process. Release builds have none.

use leasehold_core::JsonText;
#[cfg(debug_assertions)]
use std::sync::OnceLock;

/// The environment variable with a text: the process aborts in a step that computes the inputs of nodes, or the input of a start, if the params of the
/// request contain it.
pub const VARIABLE: &str = "LEASEHOLD_FAILPOINT_PARAMS";
/// The environment variable with a text: the process aborts when it builds the payloads of claimed jobs of a graph, if the params of the request contain it.
pub const CLAIM_VARIABLE: &str = "LEASEHOLD_FAILPOINT_CLAIM_PARAMS";

/// Aborts the process in a step or a start if the params contain the text of the environment variable.
#[cfg(debug_assertions)]
pub fn reach(params: &JsonText) {
    static WANTED: OnceLock<Option<String>> = OnceLock::new();
    abort_if_wanted(&WANTED, VARIABLE, params);
}

/// Aborts the process in a claim if the params contain the text of the environment variable.
#[cfg(debug_assertions)]
pub fn reach_in_claim(params: &JsonText) {
    static WANTED: OnceLock<Option<String>> = OnceLock::new();
    abort_if_wanted(&WANTED, CLAIM_VARIABLE, params);
}

#[cfg(debug_assertions)]
fn abort_if_wanted(wanted: &OnceLock<Option<String>>, variable: &str, params: &JsonText) {
    let wanted = wanted.get_or_init(|| std::env::var(variable).ok());
    if let Some(wanted) = wanted
        && params.as_str().contains(wanted)
    {
        std::process::abort();
    }
}

/// Aborts the process in a step or a start if the params contain the text of the environment variable.
#[cfg(not(debug_assertions))]
pub fn reach(_params: &JsonText) {}

/// Aborts the process in a claim if the params contain the text of the environment variable.
#[cfg(not(debug_assertions))]
pub fn reach_in_claim(_params: &JsonText) {}
