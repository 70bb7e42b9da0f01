//! The workers and handlers of `http` and `delay` nodes. Knows no store.

use leasehold_core::JsonText;
use leasehold_core::graph::{HttpCall, NodeKind};
use leasehold_outbound::{CallError, Outbound};
use leasehold_worker::{BuildError, JobContext, JobError, Worker, WorkerBuilder};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Timeout of a call whose job has none; jobs of `http` nodes always have one.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Concurrency of `delay` jobs, each of which takes no time.
const DELAY_CONCURRENCY: usize = 16;

/// Builds one worker per node type, so that no delay waits behind slow calls. `worker` returns a builder for a queue and a concurrency.
pub(crate) fn workers(
    worker: impl Fn(&str, usize) -> WorkerBuilder,
    outbound: Outbound,
    calls: usize,
) -> Result<Vec<Worker>, BuildError> {
    let outbound = Arc::new(outbound);
    let calls = worker(NodeKind::HTTP_QUEUE, calls).handler(
        "http",
        move |request: HttpCall, job: JobContext| {
            let outbound = outbound.clone();
            async move { call(&outbound, &request, &job).await }
        },
    );
    let delays = worker(NodeKind::DELAY_QUEUE, DELAY_CONCURRENCY).handler("delay", finish_delay);
    [calls, delays]
        .into_iter()
        .map(WorkerBuilder::build)
        .collect()
}

/// Makes the call, with the rest of the attempt's timeout.
async fn call(
    outbound: &Outbound,
    call: &HttpCall,
    job: &JobContext,
) -> Result<JsonText, JobError> {
    let left = job.deadline().map_or(CALL_TIMEOUT, |deadline| {
        deadline.saturating_duration_since(Instant::now())
    });
    let trace = job.trace_context();
    let result = outbound.call_traced(call, left, trace).await;
    result.map_err(failed)
}

/// Completes a delay: the queue held the job until it was due.
async fn finish_delay((): (), _: JobContext) -> Result<(), JobError> {
    Ok(())
}

fn failed(error: CallError) -> JobError {
    match (error.is_retryable, error.retry_after) {
        (false, _) => JobError::permanent(error.message),
        (true, Some(after)) => JobError::retry_after(after, error.message),
        (true, None) => JobError::new(error.message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_core::job::RetryMode;

    #[test]
    fn call_error_sets_the_retry_mode() {
        let second = Duration::from_secs(1);
        for (is_retryable, retry_after, expected) in [
            (false, None, RetryMode::Never),
            (false, Some(second), RetryMode::Never),
            (true, None, RetryMode::Policy),
            (true, Some(second), RetryMode::After(second)),
        ] {
            let error = failed(CallError {
                message: "no".to_owned(),
                is_retryable,
                retry_after,
            });
            assert_eq!((error.message(), error.retry_mode()), ("no", expected));
        }
    }
}
