//! `leasehold demo`, the client's side: four workspaces, their definitions, workers, and a load that one can watch. Knows the server by HTTP only.
//!
//! `sparrow` is small, `acme` middling and `globex` large. `magpie` is the noisy neighbour: now and then it asks for hundreds at once, and the others
//! go on as if it were not there.

mod cast;
mod hands;
mod load;
mod rhythm;
mod stage;

use crate::exit::{Exit, Failure};
use crate::session::Session;
use crate::trouble::Outcome;
use hands::Hands;
use leasehold_client::Client;
use load::Load;
use rhythm::Rhythm;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How the demo is played.
#[derive(Clone, Copy, Debug)]
pub struct DemoOptions {
    /// The same seed asks for the same.
    pub seed: u64,
    /// How long a day lasts: the load rises in the morning and falls in the evening.
    pub day: Duration,
    /// How often the noisy neighbour makes its noise.
    pub noise: Duration,
    /// How many requests it asks for then.
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

/// A demo that is set up and has not begun.
pub struct Demo {
    client: Client,
    load: Load,
}

impl Demo {
    /// Makes the workspaces, definitions and queues that are not there yet. What is there is used as it is.
    ///
    /// # Errors
    /// If the server does not answer or refuses something, or the key is not an administrator's.
    pub async fn prepare(session: &Session, options: DemoOptions) -> Result<Self, Failure> {
        let outcome: Outcome<Self> = async {
            let streams = stage::set(&session.client).await?;
            Ok(Self {
                client: session.client.clone(),
                load: Load::new(session.client.clone(), streams, Rhythm::new(options)),
            })
        }
        .await;
        let unread = || Failure::new(Exit::Failed, "standard output was closed");
        session.told(outcome)?.ok_or_else(unread)
    }

    /// Plays it until told to stop: workers work, and requests are asked for. What is in hand then is finished or given back.
    ///
    /// # Errors
    /// If the workers cannot be put together.
    pub async fn play(self, stop: CancellationToken) -> Result<(), Failure> {
        let broken =
            |error: String| Failure::new(Exit::Failed, format!("the demo's workers: {error}"));
        let hands = Hands::start(&self.client).map_err(broken)?;
        self.load.run(stop).await;
        hands.stop().await;
        Ok(())
    }
}
