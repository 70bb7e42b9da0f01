//! Fail points: places where a test can abort the process, as `kill -9` would. Release builds have none.

/// The environment variable that selects a fail point: `name`, or `name:n` for the n-th time it is reached.
pub const VARIABLE: &str = "LEASEHOLD_FAILPOINT";

/// Aborts the process if the environment variable selects this fail point.
#[cfg(debug_assertions)]
pub fn reach(name: &str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static WANTED: OnceLock<Option<(String, u64)>> = OnceLock::new();
    static REACHED: AtomicU64 = AtomicU64::new(0);
    let wanted = WANTED.get_or_init(|| {
        let given = std::env::var(VARIABLE).ok()?;
        let (name, times) = given.split_once(':').unwrap_or((&given, "1"));
        Some((name.to_owned(), times.parse().ok()?))
    });
    if let Some((wanted, times)) = wanted
        && wanted == name
        && REACHED.fetch_add(1, Ordering::SeqCst) + 1 == *times
    {
        die();
    }
}

/// Aborts the process if the environment variable selects this fail point.
#[cfg(not(debug_assertions))]
pub fn reach(_name: &str) {}

/// Aborts without unwinding.
#[cfg(debug_assertions)]
fn die() -> ! {
    std::process::abort()
}
