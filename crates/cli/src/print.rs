//! What commands print that are about this machine rather than about a server: to standard output, for whoever asked.

use anyhow::Result;
use std::io::{self, ErrorKind, Write};

/// A text as it is. A reader that has seen enough and left is no error.
pub(crate) fn text(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    let written = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// A JSON document, for reading.
pub(crate) fn json(value: &serde_json::Value) -> Result<()> {
    text(&format!("{value:#}\n"))
}
