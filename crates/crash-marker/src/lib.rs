//! Crash markers: while a process computes the input of a request, a file in the data directory names the request's execution. If computing crashes
//! the process, the next one reads which requests it was. Knows no store, no engine and no HTTP.
//!
//! The markers need no fsync: the process dies, not the machine, so the kernel keeps what was written. ADR 22 explains the design.

mod failpoint;
mod file;

pub use failpoint::{
    BLOCK_VARIABLE as BLOCK_FAILPOINT_VARIABLE, BLOCKED,
    CLAIM_VARIABLE as CLAIM_FAILPOINT_VARIABLE, VARIABLE as FAILPOINT_VARIABLE,
    reach as reach_failpoint, reach_in_claim as reach_claim_failpoint,
};
pub use file::CrashedProcess;

use file::MarkerFile;
use leasehold_core::ExecutionId;
use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The crash markers of a process. Clones share the file. Without a file, computations run unmarked.
#[derive(Clone, Debug, Default)]
pub struct CrashMarkers {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    file: OnceLock<MarkerFile>,
    /// Read by ordinary computations; written by those that must be alone.
    alone: RwLock<()>,
}

/// The computation of a request's input.
#[derive(Clone, Copy, Debug)]
pub struct Computation {
    /// The execution that the input is for.
    pub execution: ExecutionId,
    /// Whether a process crashed in a computation for this request. Then nothing else is computed at the same time.
    pub crashed: bool,
}

/// Ends the turn of a computation.
enum Turn<'a> {
    Shared(#[expect(dead_code, reason = "held until the turn ends")] RwLockReadGuard<'a, ()>),
    Alone(#[expect(dead_code, reason = "held until the turn ends")] RwLockWriteGuard<'a, ()>),
}

impl CrashMarkers {
    /// Creates the marker file of this process in `dir`, and returns the crashed processes whose markers are there. `process` is the unique name of
    /// this process.
    ///
    /// # Errors
    /// The directory cannot be created, read or written; computations then stay unmarked.
    pub fn attach(&self, dir: &Path, process: &str) -> io::Result<Vec<CrashedProcess>> {
        let file = MarkerFile::create(dir, process)?;
        let crashed = file::crashed_processes(dir, file.path())?;
        // A second call keeps the first file; the other one is removed when it is dropped.
        let _ = self.shared.file.set(file);
        Ok(crashed)
    }

    /// Runs `work`, which computes the input of a request, with its execution marked. `work` must not call this method, and must not wait for other
    /// computations. Blocks the thread while a computation that must be alone is running or waiting, and costs two writes into the page cache.
    pub fn compute<T>(&self, of: Computation, work: impl FnOnce() -> T) -> T {
        let lock = &self.shared.alone;
        let _turn = if of.crashed {
            Turn::Alone(lock.write().unwrap_or_else(PoisonError::into_inner))
        } else {
            Turn::Shared(lock.read().unwrap_or_else(PoisonError::into_inner))
        };
        let _marker = self.shared.file.get().map(|file| file.mark(of.execution));
        work()
    }
}

#[cfg(test)]
mod tests;
