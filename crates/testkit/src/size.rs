//! The size of a test: small by default, large under `cargo xtask test --full`.

/// Set by `cargo xtask test --full`.
pub const FULL_VARIABLE: &str = "LEASEHOLD_TEST_FULL";

/// Returns `usual`, or `full` when [`FULL_VARIABLE`] is set.
pub fn sized<T>(usual: T, full: T) -> T {
    if std::env::var_os(FULL_VARIABLE).is_some() {
        full
    } else {
        usual
    }
}
