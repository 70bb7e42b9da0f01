//! Turns for other tasks while a task reads much JSON: a thread that reads megabytes without a pause serves no other call. Knows no database.

/// Bytes after which other tasks get a turn: reading them takes about a tenth of a millisecond.
const TURN_BYTES: usize = 64 * 1024;

/// Counts the bytes that a task has read, and lets other tasks run in between.
#[derive(Debug, Default)]
pub struct Turns {
    read: usize,
}

impl Turns {
    /// Counts `bytes` that were read. Yields to other tasks of the thread when enough were read since the last time.
    pub async fn count(&mut self, bytes: usize) {
        self.read += bytes;
        if self.read >= TURN_BYTES {
            self.read = 0;
            tokio::task::yield_now().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    fn is_ready(turns: &mut Turns, bytes: usize) -> bool {
        let counting = pin!(turns.count(bytes));
        counting
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_ready()
    }

    #[tokio::test]
    async fn other_tasks_run_after_many_bytes_only() {
        let mut turns = Turns::default();
        assert!(is_ready(&mut turns, TURN_BYTES - 1));
        assert!(!is_ready(&mut turns, 1));
        assert!(is_ready(&mut turns, 1));
    }
}
