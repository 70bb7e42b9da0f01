//! Unique names for databases and namespaces.

use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

/// Returns a name that is unique on a server among all processes of a test run.
pub(crate) fn unique_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    // Process ids repeat, also across containers that share a server; the clock distinguishes them.
    let nanos = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos());
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("test_{}_{count}_{nanos:x}", process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_repeat() {
        assert_ne!(unique_name(), unique_name());
    }
}
