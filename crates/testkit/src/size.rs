//! How large a test is: small enough to run on every change, or as large as `cargo xtask test --full` wants it.

/// Set by `cargo xtask test --full`.
pub const FULL_VARIABLE: &str = "LEASEHOLD_TEST_FULL";

/// Returns `usual`, or `full` when tests run with [`FULL_VARIABLE`].
pub fn sized<T>(usual: T, full: T) -> T {
    if std::env::var_os(FULL_VARIABLE).is_some() {
        full
    } else {
        usual
    }
}
