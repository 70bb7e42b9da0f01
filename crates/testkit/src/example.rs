//! Finds the executable of an example. Builds nothing.

use std::env;
use std::path::PathBuf;

/// Returns the executable of an example of the tested package, which Cargo builds beside the tests.
///
/// # Panics
/// When the example is not built.
pub fn example_program(name: &str) -> PathBuf {
    let directory = env::current_exe()
        .ok()
        .and_then(|tests| Some(tests.parent()?.parent()?.join("examples")));
    let program = directory.unwrap_or_default().join(name);
    assert!(
        program.is_file(),
        "example {name} is not built; run: cargo build --workspace --examples"
    );
    program
}
