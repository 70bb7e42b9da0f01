//! The client side of `leasehold demo`: four workspaces, their definitions, workers and load. Talks to the server over HTTP only.
//!
//! `sparrow` is small, `acme` medium and `globex` large. `magpie` is the noisy neighbour: it enqueues bursts of hundreds of requests, which do not slow
//! down the others.

mod fixtures;
mod load;
mod load_profile;
mod setup;
mod workers;

use crate::command_error::CommandResult;
use crate::exit::{Exit, Failure};
use crate::session::Session;
use leasehold_client::Client;
use load::LoadGenerator;
use load_profile::LoadProfile;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use workers::DemoWorkers;

/// Parameters of the demo's load.
#[derive(Clone, Copy, Debug)]
pub struct DemoOptions {
    /// Seed of the random load; the same seed gives the same load.
    pub seed: u64,
    /// Length of a simulated day; the load follows a daily wave.
    pub day: Duration,
    /// Time between two bursts of the noisy neighbour.
    pub noise: Duration,
    /// Requests per burst.
    pub burst: usize,
}

impl Default for DemoOptions {
    fn default() -> Self {
        Self {
            seed: 7,
            day: Duration::from_secs(120),
            noise: Duration::from_secs(60),
            burst: 300,
        }
    }
}

/// A demo that is set up and not running yet.
pub struct Demo {
    client: Client,
    load: LoadGenerator,
}

impl Demo {
    /// Creates the missing workspaces, definitions and queues. Leaves existing ones unchanged.
    ///
    /// # Errors
    /// Fails if the server is unreachable or rejects a call, or the key is not an administrator key.
    pub async fn prepare(session: &Session, options: DemoOptions) -> Result<Self, Failure> {
        let outcome: CommandResult<Self> = async {
            let streams = setup::create_missing(&session.client).await?;
            Ok(Self {
                client: session.client.clone(),
                load: LoadGenerator::new(
                    session.client.clone(),
                    streams,
                    LoadProfile::new(options),
                ),
            })
        }
        .await;
        let closed = || Failure::new(Exit::Failed, "standard output was closed");
        session.finish(outcome)?.ok_or_else(closed)
    }

    /// Runs the workers and the load until stopped. Running jobs finish or return to the queue.
    ///
    /// # Errors
    /// Fails if a worker cannot be built.
    pub async fn run(self, stop: CancellationToken) -> Result<(), Failure> {
        let failure = |error: String| {
            Failure::new(
                Exit::Failed,
                format!("cannot start the demo workers: {error}"),
            )
        };
        let workers = DemoWorkers::start(&self.client).map_err(failure)?;
        self.load.run(stop).await;
        workers.stop().await;
        Ok(())
    }
}
