//! Runs a client command: without settings, without a store, on one thread.

use anyhow::{Context, Result};
use leasehold_console::Command;
use leasehold_process::logging::{self, LogFormat};

/// Logs only the warnings of a worker.
const LEVEL: &str = "off,leasehold_worker=warn,leasehold_client=warn";

pub(crate) fn run(command: Command) -> Result<()> {
    logging::start(LEVEL, LogFormat::Text)?;
    let done = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the async runtime")?
        .block_on(command.run());
    Ok(done?)
}
