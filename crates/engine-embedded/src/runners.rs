//! What works in this process: a worker for each type of node of Leasehold's own; started together, stopped in order. Knows no node's work.

use crate::nodes;
use leasehold_outbound::Outbound;
use leasehold_worker::{BuildError, JobSource, Worker, WorkerBuilder};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// How nodes are worked on.
#[derive(Clone, Debug)]
pub struct RunnerOptions {
    /// How many calls are made at once.
    pub concurrency: usize,
    /// How long a claim of a node lasts unless renewed: what a killed process had goes on after this.
    pub lease: Duration,
    /// How long a stop waits for calls under way.
    pub drain_timeout: Duration,
}

impl Default for RunnerOptions {
    fn default() -> Self {
        Self {
            concurrency: 64,
            lease: Duration::from_secs(5),
            drain_timeout: Duration::from_secs(10),
        }
    }
}

/// Works on calls and pauses of graphs until it is stopped.
///
/// Pauses have a worker of their own, so that none waits behind slow calls.
pub struct NodeRunners {
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl NodeRunners {
    /// Starts it on the jobs of this source.
    ///
    /// # Errors
    /// If a number in the options cannot work.
    pub fn start(
        source: Arc<dyn JobSource>,
        outbound: Outbound,
        options: &RunnerOptions,
    ) -> Result<Self, BuildError> {
        let worker = |queue: &str, concurrency: usize| -> WorkerBuilder {
            Worker::of(source.clone())
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

    /// Returns when something has ended that should not have: only a panic does that.
    pub async fn broken(&mut self) -> String {
        match self.tasks.join_next().await {
            Some(Err(error)) => error.to_string(),
            Some(Ok(())) | None => "a worker of nodes ended by itself".to_owned(),
        }
    }

    /// Stops: nothing more is claimed, calls under way may end until the drain timeout, and what has not ended then is given back.
    pub async fn stop(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}
