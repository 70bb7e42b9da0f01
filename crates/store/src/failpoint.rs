//! Places where a test can end the process at once, as kill -9 would. In a release build there are none.

/// The variable that names the place: `name`, or `name:n` for the n-th time it is reached.
pub const VARIABLE: &str = "LEASEHOLD_FAILPOINT";

/// Ends the process if a test asked for it here.
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

/// Ends the process if a test asked for it here.
#[cfg(not(debug_assertions))]
pub fn reach(_name: &str) {}

/// Without unwinding, without running anything else.
#[cfg(debug_assertions)]
fn die() -> ! {
    std::process::abort()
}
