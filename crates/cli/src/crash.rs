//! What a server does first after a crash: notes in the store which requests' inputs the crashed process was computing, and computes them again.

use leasehold_crash_marker::{CrashMarkers, CrashedProcess};
use leasehold_engine::Engine;
use leasehold_runtime::{note_crash, recompute};
use leasehold_store::Store;
use leasehold_store::request::{Crash, CrashedRequest};
use std::path::Path;
use std::sync::Arc;

/// The directory of the markers in the data directory.
const MARKERS_DIR: &str = "crash-markers";

/// Begins to mark computations, and resolves the crashes of earlier processes with this data directory. Failures are logged: the server runs without
/// markers then, or the next start resolves the crash.
pub(crate) async fn resolve(
    data_dir: &Path,
    process: &str,
    markers: &CrashMarkers,
    store: &dyn Store,
    engine: &Arc<dyn Engine>,
) {
    let dir = data_dir.join(MARKERS_DIR);
    let crashed = match markers.attach(&dir, process) {
        Ok(crashed) => crashed,
        Err(error) => {
            let dir = dir.display();
            tracing::warn!(%error, %dir, "failed to create crash markers; crashes caused by a request are not counted");
            return;
        }
    };
    let mut requests = Vec::new();
    for process in crashed {
        requests.extend(note(store, process).await);
    }
    recompute(store, engine, requests).await;
}

/// Notes one crash and forgets its markers.
async fn note(store: &dyn Store, process: CrashedProcess) -> Vec<CrashedRequest> {
    let crash = Crash {
        process: process.process.clone(),
        executions: process.executions.clone(),
    };
    match note_crash(store, &crash).await {
        Ok(requests) => {
            if let Err(error) = process.forget() {
                tracing::warn!(%error, "failed to remove the markers of a crashed process");
            }
            requests
        }
        Err(error) => {
            tracing::warn!(%error, process = crash.process, "failed to note a crash; the next start tries again");
            Vec::new()
        }
    }
}
