//! Standard output of local commands.

use anyhow::Result;
use std::io::{self, ErrorKind, Write};

/// Prints a text. A closed reader is not an error.
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

/// Prints an indented JSON document.
pub(crate) fn json(value: &serde_json::Value) -> Result<()> {
    text(&format!("{value:#}\n"))
}
