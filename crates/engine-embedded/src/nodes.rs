//! What is done for a node of Leasehold's own, and the worker that does it: a call is made, a pause is over. Knows no store.

use leasehold_core::JsonText;
use leasehold_core::graph::{HttpCall, NodeKind};
use leasehold_outbound::{CallError, Outbound};
use leasehold_worker::{BuildError, JobContext, JobError, Worker, WorkerBuilder};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Where a job says nothing; jobs of `http` nodes always do.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Pauses that end at once; each takes no time.
const PAUSES: usize = 16;

/// The workers, one for each type of node, so that no pause waits behind slow calls. `worker` begins one on a queue for so many jobs at once.
pub(crate) fn workers(
    worker: impl Fn(&str, usize) -> WorkerBuilder,
    outbound: Outbound,
    calls: usize,
) -> Result<Vec<Worker>, BuildError> {
    let outbound = Arc::new(outbound);
    let calls = worker(NodeKind::HTTP_QUEUE, calls).handler(
        "http",
        move |made: HttpCall, job: JobContext| {
            let outbound = outbound.clone();
            async move { call(&outbound, &made, &job).await }
        },
    );
    let pauses = worker(NodeKind::DELAY_QUEUE, PAUSES).handler("delay", pause_is_over);
    [calls, pauses]
        .into_iter()
        .map(WorkerBuilder::build)
        .collect()
}

/// Makes the call. What is left of the attempt's time is the call's.
async fn call(
    outbound: &Outbound,
    call: &HttpCall,
    job: &JobContext,
) -> Result<JsonText, JobError> {
    let left = job.deadline().map_or(CALL_TIMEOUT, |deadline| {
        deadline.saturating_duration_since(Instant::now())
    });
    let trace = job.trace_context();
    let made = outbound.call_traced(call, left, trace).await;
    made.map_err(failed)
}

/// Its time has come: the queue has kept it until now.
async fn pause_is_over((): (), _: JobContext) -> Result<(), JobError> {
    Ok(())
}

fn failed(error: CallError) -> JobError {
    match (error.again, error.after) {
        (false, _) => JobError::permanent(error.message),
        (true, Some(after)) => JobError::retry_after(after, error.message),
        (true, None) => JobError::new(error.message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_core::job::Again;

    #[test]
    fn a_call_says_whether_and_when_it_is_tried_again() {
        let second = Duration::from_secs(1);
        for (again, after, expected) in [
            (false, None, Again::Never),
            (false, Some(second), Again::Never),
            (true, None, Again::Policy),
            (true, Some(second), Again::After(second)),
        ] {
            let error = failed(CallError {
                message: "no".to_owned(),
                again,
                after,
            });
            assert_eq!((error.message(), error.again()), ("no", expected));
        }
    }
}
