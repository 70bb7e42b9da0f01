//! Finds the program of an example. Builds nothing.

use std::env;
use std::path::PathBuf;

/// The program of an example of the tested package, which Cargo builds beside the tests.
///
/// # Panics
/// When only the tests were built.
pub fn example_program(name: &str) -> PathBuf {
    let folder = env::current_exe()
        .ok()
        .and_then(|tests| Some(tests.parent()?.parent()?.join("examples")));
    let program = folder.unwrap_or_default().join(name);
    assert!(
        program.is_file(),
        "the example {name} is not built; run: cargo build --workspace --examples"
    );
    program
}
