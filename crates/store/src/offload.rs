//! Work on JSON of callers off the serving threads: a thread that parses much text serves no other call meanwhile. Knows no database.

use crate::{Error, ErrorKind, Result};

/// Bytes from which on work runs on a thread for blocking work: below, it takes less than a millisecond.
const BLOCKING_MIN_BYTES: usize = 64 * 1024;

/// Runs work on this many bytes: at once if they are few, else on a thread for blocking work.
///
/// # Errors
/// Those of the work; `Broken` if it panics.
pub async fn run_off_thread<T: Send + 'static>(
    context: &'static str,
    bytes: usize,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    if bytes < BLOCKING_MIN_BYTES {
        return work();
    }
    let finished = tokio::task::spawn_blocking(work).await;
    finished.unwrap_or_else(|error| {
        let kind = ErrorKind::Broken("reading JSON was interrupted".to_owned());
        Err(Error::new(context, kind).because(error))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::thread;

    #[tokio::test]
    async fn only_large_work_leaves_the_serving_thread() {
        let here = thread::current().id();
        let work = || Ok(thread::current().id());
        let small = run_off_thread("test", BLOCKING_MIN_BYTES - 1, work).await;
        assert_eq!(small.unwrap(), here);
        let large = run_off_thread("test", BLOCKING_MIN_BYTES, work).await;
        assert_ne!(large.unwrap(), here);
    }
}
