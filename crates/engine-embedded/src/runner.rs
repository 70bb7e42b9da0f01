//! Starts and stops the workers of `http` and `delay` nodes. Knows no handler.

use crate::nodes;
use leasehold_outbound::Outbound;
use leasehold_worker::{BuildError, JobSource, Worker, WorkerBuilder};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The options of a [`NodeRunner`].
#[derive(Clone, Debug)]
pub struct NodeRunnerOptions {
    /// Maximum number of concurrent calls.
    pub concurrency: usize,
    /// The lease of a node's job. The nodes of a killed process run again after this time.
    pub lease: Duration,
    /// How long a stop waits for running calls.
    pub drain_timeout: Duration,
}

impl Default for NodeRunnerOptions {
    fn default() -> Self {
        Self {
            concurrency: 64,
            lease: Duration::from_secs(5),
            drain_timeout: Duration::from_secs(10),
        }
    }
}

/// Runs the `http` and `delay` nodes of graphs until it is stopped.
///
/// Delays have their own worker, so that none waits behind slow calls.
pub struct NodeRunner {
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl NodeRunner {
    /// Starts the workers on this job source.
    ///
    /// # Errors
    /// Fails if an option is out of range.
    pub fn start(
        source: Arc<dyn JobSource>,
        outbound: Outbound,
        options: &NodeRunnerOptions,
    ) -> Result<Self, BuildError> {
        let worker = |queue: &str, concurrency: usize| -> WorkerBuilder {
            Worker::builder(source.clone())
                .queue(queue)
                .concurrency(concurrency)
                .lease(options.lease)
                .drain_timeout(options.drain_timeout)
        };
        let workers = nodes::workers(worker, outbound, options.concurrency)?;
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        for worker in workers {
            let stop = stop.clone();
            tasks.spawn(async move {
                worker.run(stop.cancelled_owned()).await;
            });
        }
        Ok(Self { stop, tasks })
    }

    /// Returns the error when a worker ends unexpectedly, which only a panic causes.
    pub async fn crashed(&mut self) -> String {
        match self.tasks.join_next().await {
            Some(Err(error)) => error.to_string(),
            Some(Ok(())) | None => "a node worker stopped unexpectedly".to_owned(),
        }
    }

    /// Drains the workers: they stop claiming, running calls may finish until the drain timeout, and the jobs of the rest are returned.
    pub async fn stop(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}
