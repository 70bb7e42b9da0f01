//! Waits for a row that another transaction has locked, without holding a connection meanwhile. Knows no table.

use crate::error::is_lock_timeout;
use leasehold_store::{Error, Result};
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// How long an operation tries again after the first lock that it could not get in time. A large batch may take longer before that.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// The pause after the first try; it doubles up to `MAX_PAUSE`.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const MAX_PAUSE: Duration = Duration::from_millis(500);

/// The pauses before a statement that skipped locked rows tries them again. Most locks are those of our own transactions, which end within
/// milliseconds. What is still locked then is left to the caller.
pub(crate) const BRIEF_PAUSES: [Duration; 2] =
    [Duration::from_millis(10), Duration::from_millis(40)];

/// How long a transaction waits for a row if it holds rows of other executions, or if its caller tries again without a connection.
pub(crate) const LOCK_TIMEOUT: &str = "200ms";
/// The same, if others wait for the end of the call: it has waited for a locked row already, or has more executions to do.
pub(crate) const SHORT_LOCK_TIMEOUT: &str = "30ms";

/// The wait of one operation, which tries again after each pause.
pub(crate) struct LockWait {
    /// From the first failure on.
    until: Option<Instant>,
    pause: Duration,
}

impl LockWait {
    pub(crate) fn begin() -> Self {
        Self {
            until: None,
            pause: FIRST_PAUSE,
        }
    }

    /// Pauses before the next try. The caller must have returned its connection.
    ///
    /// # Errors
    /// The given error, if it has another cause than a lock, or if the time is up.
    pub(crate) async fn pause_after(&mut self, error: Error) -> Result<()> {
        let now = Instant::now();
        let until = *self.until.get_or_insert(now + MAX_WAIT);
        if !is_lock_timeout(&error) || now >= until {
            return Err(error);
        }
        sleep(self.pause).await;
        self.pause = (self.pause * 2).min(MAX_PAUSE);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::busy;
    use leasehold_store::ErrorKind;

    #[tokio::test]
    async fn wait_ends_after_its_time_with_the_error_of_the_lock() {
        let (mut wait, begun) = (LockWait::begin(), Instant::now());
        assert!(wait.pause_after(busy("test")).await.is_ok());
        wait.until = Some(Instant::now());
        assert!(wait.pause_after(busy("test")).await.is_err());
        assert!(begun.elapsed() >= FIRST_PAUSE);
    }

    #[tokio::test]
    async fn other_errors_are_returned_at_once() {
        let error = Error::new("test", ErrorKind::Contended("deadlock detected".to_owned()));
        assert!(LockWait::begin().pause_after(error).await.is_err());
    }
}
