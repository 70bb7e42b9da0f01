//! The worker that runs graphs on Temporal: connects, takes on what the task queue holds, drains when told to stop. What a graph does is decided in
//! the workflow, what a node does in the activities.
//!
//! The only crate with Temporal's SDK. The program of it is started by `leasehold worker`.

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
    GRAPH_WORKFLOW_TYPE, GraphWorkerOptions, InvalidOptions, TemporalEngine, TemporalOptions,
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

/// Between two tries to reach Temporal.
const RECONNECT: Duration = Duration::from_secs(2);
/// Temporal hears of a call that goes on at least so often, and the call of its end as soon.
const HEARTBEAT_MAX: Duration = Duration::from_secs(3);

/// Why a worker cannot work.
#[derive(Debug, Error)]
pub enum WorkerError {
    /// The options of the connection to Temporal.
    #[error(transparent)]
    Options(#[from] InvalidOptions),
    /// The workflow type is another one.
    #[error(
        "the worker runs graphs as the workflow type {GRAPH_WORKFLOW_TYPE}, and the settings say `{0}`"
    )]
    WorkflowType(String),
    /// The SDK does not accept what it is given.
    #[error("the Temporal SDK refuses to work: {0}")]
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
    /// Checks the options and connects to nothing. Jobs go to the server of `client`, calls are made by `outbound`.
    ///
    /// # Errors
    /// If the options cannot be used.
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

    /// Works until told to stop, waiting for Temporal where it is away. Calls under way get time to end; tasks go on with whoever is next.
    ///
    /// # Errors
    /// If the SDK cannot work at all.
    pub async fn run(self, stop: CancellationToken) -> Result<(), WorkerError> {
        // Workflows are bound to one thread, and this one is theirs. The runtime too, so that it outlives all the SDK has begun on it.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .thread_name("graph-activities")
            .build()
            .map_err(|error| WorkerError::Sdk(error.to_string()))?;
        let (ended, end) = oneshot::channel();
        std::thread::Builder::new()
            .name("graphs".to_owned())
            .spawn(move || {
                let _ = ended.send(runtime.block_on(self.work(stop)));
            })
            .map_err(|error| WorkerError::Sdk(error.to_string()))?;
        end.await
            .unwrap_or_else(|_| Err(WorkerError::Sdk("its thread has ended".to_owned())))
    }

    async fn work(self, stop: CancellationToken) -> Result<(), WorkerError> {
        let runtime = Runtime::from_current_tokio(RuntimeOptions::default()).map_err(sdk)?;
        while !stop.is_cancelled() {
            let Some(connection) = self.connect(&stop).await? else {
                break;
            };
            if let Err(error) = self.serve(&runtime, connection, &stop).await? {
                tracing::warn!(%error, "Temporal does not serve this worker; trying again");
                pause(&stop).await;
            }
        }
        Ok(())
    }

    /// The connection, as soon as there is one; none if told to stop before.
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
            tracing::warn!(address = self.temporal.address, %error, "Temporal cannot be reached; trying again");
            pause(stop).await;
        }
    }

    /// Works on one connection, which the SDK keeps up. What comes back is why it no longer could.
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
            "working on graphs"
        );
        let stopping = stop.clone();
        let stopper = tokio::spawn(async move {
            stopping.cancelled().await;
            shut_down();
        });
        let end = worker.run().await;
        stopper.abort();
        Ok(end.map_err(|error| leasehold_engine_temporal::chain(&error)))
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
        () = tokio::time::sleep(RECONNECT) => {}
    }
}

fn sdk(error: impl std::error::Error) -> WorkerError {
    WorkerError::Sdk(error.to_string())
}
