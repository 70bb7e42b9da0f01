//! The fail points of computations: a test can make the input of a request abort the process. Release builds have none.

use leasehold_core::JsonText;
#[cfg(debug_assertions)]
use std::{io::Write, sync::OnceLock};

/// The environment variable with a text: the process aborts in a step that computes the inputs of nodes, or the input of a start, if the params of the
/// request contain it.
pub const VARIABLE: &str = "LEASEHOLD_FAILPOINT_PARAMS";
/// The environment variable with a text: the process aborts when it builds the payloads of claimed jobs of a graph, if the params of the request contain it.
pub const CLAIM_VARIABLE: &str = "LEASEHOLD_FAILPOINT_CLAIM_PARAMS";
/// The environment variable with a text: a step or a start never ends if the params of the request contain it, so that a test can kill the process in the
/// middle of it. It prints [`BLOCKED`] to standard error.
pub const BLOCK_VARIABLE: &str = "LEASEHOLD_FAILPOINT_BLOCKED_PARAMS";
/// What a step or a start prints when it is blocked.
pub const BLOCKED: &str = "a fail point blocks a computation";

/// Aborts or blocks a step or a start if the params contain the text of the environment variable.
#[cfg(debug_assertions)]
pub fn reach(params: &JsonText) {
    static ABORTS: OnceLock<Option<String>> = OnceLock::new();
    static BLOCKS: OnceLock<Option<String>> = OnceLock::new();
    abort_if_wanted(&ABORTS, VARIABLE, params);
    if is_wanted(&BLOCKS, BLOCK_VARIABLE, params) {
        let _ = writeln!(std::io::stderr(), "{BLOCKED}");
        loop {
            std::thread::park();
        }
    }
}

/// Aborts the process in a claim if the params contain the text of the environment variable.
#[cfg(debug_assertions)]
pub fn reach_in_claim(params: &JsonText) {
    static WANTED: OnceLock<Option<String>> = OnceLock::new();
    abort_if_wanted(&WANTED, CLAIM_VARIABLE, params);
}

#[cfg(debug_assertions)]
fn abort_if_wanted(wanted: &OnceLock<Option<String>>, variable: &str, params: &JsonText) {
    if is_wanted(wanted, variable, params) {
        std::process::abort();
    }
}

#[cfg(debug_assertions)]
fn is_wanted(wanted: &OnceLock<Option<String>>, variable: &str, params: &JsonText) -> bool {
    let wanted = wanted.get_or_init(|| std::env::var(variable).ok());
    wanted
        .as_ref()
        .is_some_and(|wanted| params.as_str().contains(wanted))
}

/// Aborts or blocks a step or a start if the params contain the text of the environment variable.
#[cfg(not(debug_assertions))]
pub fn reach(_params: &JsonText) {}

/// Aborts the process in a claim if the params contain the text of the environment variable.
#[cfg(not(debug_assertions))]
pub fn reach_in_claim(_params: &JsonText) {}
