//! The Temporal worker that runs graphs: connects, polls the task queue, drains on shutdown. The workflow decides what a graph does, the activities
//! what a node does.
//!
//! The only crate that depends on Temporal's SDK. `leasehold worker` starts its program.

mod activities;
mod policy;
#[cfg(test)]
mod replay;
mod sdk_connection;
mod task;
mod workflow;

use activities::Activities;
use leasehold_client::Client;
use leasehold_engine_temporal::{
    GRAPH_WORKFLOW_TYPE, GraphWorkerOptions, InvalidTemporalOptions, TemporalEngine,
    TemporalOptions,
};
use leasehold_outbound::Outbound;
use std::time::Duration;
use temporalio_client::{ClientOptions, Connection};
use temporalio_sdk::runtime::worker_tuner::{
    FixedSizeSlotSupplier, SlotSupplier, TunerHolder, WorkerTuner,
};
use temporalio_sdk::runtime::{Runtime, RuntimeOptions};
use temporalio_sdk::{Worker, WorkerOptions};
use thiserror::Error;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use workflow::LeaseholdGraph;

/// Delay between connection attempts to Temporal.
const RECONNECT_DELAY: Duration = Duration::from_secs(2);
/// The longest interval between heartbeats to Temporal, and so the longest delay until an activity learns of its cancellation.
const HEARTBEAT_MAX: Duration = Duration::from_secs(3);

/// Why a graph worker cannot run.
#[derive(Debug, Error)]
pub enum WorkerError {
    /// The options of the connection are invalid.
    #[error(transparent)]
    Options(#[from] InvalidTemporalOptions),
    /// The configured workflow type is not the worker's.
    #[error(
        "invalid temporal.graph_workflow_type `{0}`: the worker runs only {GRAPH_WORKFLOW_TYPE}"
    )]
    WorkflowType(String),
    /// The SDK failed to start.
    #[error("failed to start the Temporal SDK worker: {0}")]
    Sdk(String),
}

/// A Temporal worker that runs graphs.
pub struct GraphWorker {
    temporal: TemporalOptions,
    options: GraphWorkerOptions,
    client: Client,
    outbound: Outbound,
    engine: TemporalEngine,
}

impl GraphWorker {
    /// Checks the options without connecting. Jobs go to the server of `client`, HTTP calls through `outbound`.
    ///
    /// # Errors
    /// Fails if the options are invalid.
    pub fn new(
        temporal: TemporalOptions,
        options: GraphWorkerOptions,
        client: Client,
        outbound: Outbound,
    ) -> Result<Self, WorkerError> {
        if temporal.graph_workflow_type != GRAPH_WORKFLOW_TYPE {
            return Err(WorkerError::WorkflowType(temporal.graph_workflow_type));
        }
        Ok(Self {
            engine: TemporalEngine::new(temporal.clone())?,
            temporal,
            options,
            client,
            outbound,
        })
    }

    /// Runs until `stop` is cancelled, and reconnects while Temporal is down. On shutdown running calls may finish; another worker continues the tasks.
    ///
    /// # Errors
    /// Fails if the SDK cannot start.
    pub async fn run(self, stop: CancellationToken) -> Result<(), WorkerError> {
        // Workflows are bound to one thread, which also owns the runtime, so that the runtime outlives all SDK tasks.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .thread_name("graph-activities")
            .build()
            .map_err(|error| WorkerError::Sdk(error.to_string()))?;
        let (ended, end) = oneshot::channel();
        std::thread::Builder::new()
            .name("graphs".to_owned())
            .spawn(move || {
                let _ = ended.send(runtime.block_on(self.run_loop(stop)));
            })
            .map_err(|error| WorkerError::Sdk(error.to_string()))?;
        end.await
            .unwrap_or_else(|_| Err(WorkerError::Sdk("the worker's thread panicked".to_owned())))
    }

    async fn run_loop(self, stop: CancellationToken) -> Result<(), WorkerError> {
        let runtime = Runtime::from_current_tokio(RuntimeOptions::default()).map_err(sdk)?;
        while !stop.is_cancelled() {
            let Some(connection) = self.connect(&stop).await? else {
                break;
            };
            if let Err(error) = self.serve(&runtime, connection, &stop).await? {
                tracing::warn!(%error, "worker connection to Temporal failed; reconnecting");
                pause(&stop).await;
            }
        }
        Ok(())
    }

    /// Connects, and retries until it succeeds. Returns `None` if `stop` is cancelled before.
    async fn connect(&self, stop: &CancellationToken) -> Result<Option<Connection>, WorkerError> {
        let options = sdk_connection::options(&self.temporal)?;
        let limit = self.temporal.connect_timeout;
        loop {
            let attempt = tokio::time::timeout(limit, Connection::connect(options.clone()));
            let error = tokio::select! {
                () = stop.cancelled() => return Ok(None),
                attempt = attempt => match attempt {
                    Ok(Ok(connection)) => return Ok(Some(connection)),
                    Ok(Err(error)) => sdk_connection::explain(&error),
                    Err(_elapsed) => format!("no connection within {limit:?}"),
                },
            };
            tracing::warn!(address = self.temporal.address, %error, "failed to connect to Temporal; retrying");
            pause(stop).await;
        }
    }

    /// Runs the worker on one connection, which the SDK maintains. The inner error says why it ended.
    async fn serve(
        &self,
        runtime: &Runtime,
        connection: Connection,
        stop: &CancellationToken,
    ) -> Result<Result<(), String>, WorkerError> {
        let client = ClientOptions::new(&self.temporal.namespace).build();
        let client = temporalio_client::Client::new(connection, client).map_err(sdk)?;
        let mut worker = Worker::new(runtime, client, self.sdk_options(stop)?).map_err(sdk)?;
        let shut_down = worker.shutdown_handle();
        tracing::info!(
            address = self.temporal.address,
            namespace = self.temporal.namespace,
            task_queue = self.temporal.graph_task_queue,
            "connected to Temporal; running graphs"
        );
        let stopping = stop.clone();
        let stopper = tokio::spawn(async move {
            stopping.cancelled().await;
            shut_down();
        });
        let end = worker.run().await;
        stopper.abort();
        Ok(end.map_err(|error| leasehold_engine_temporal::error_chain(&error)))
    }

    fn sdk_options(&self, stop: &CancellationToken) -> Result<WorkerOptions, WorkerError> {
        let slots = |count: usize| SlotSupplier::from(FixedSizeSlotSupplier::new(count));
        let tuner = TunerHolder::builder()
            .workflow_task_slot_supplier(slots(100))
            .activity_task_slot_supplier(slots(self.options.concurrency))
            .local_activity_task_slot_supplier(slots(100))
            .nexus_task_slot_supplier(slots(1))
            .build();
        let options = WorkerOptions::new(&self.temporal.graph_task_queue)
            .client_identity_override(self.temporal.identity.clone())
            .graceful_shutdown_period(self.options.drain_timeout)
            .max_heartbeat_throttle_interval(HEARTBEAT_MAX)
            .tuner(WorkerTuner::from(tuner))
            .register_workflow::<LeaseholdGraph>()
            .map_err(sdk)?
            .register_activities(Activities {
                client: self.client.clone(),
                outbound: self.outbound.clone(),
                engine: self.engine.clone(),
                stop: stop.clone(),
            })
            .build();
        Ok(options)
    }
}

async fn pause(stop: &CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = tokio::time::sleep(RECONNECT_DELAY) => {}
    }
}

fn sdk(error: impl std::error::Error) -> WorkerError {
    WorkerError::Sdk(error.to_string())
}
