//! Polls the server's overview and instances.

use leasehold_client::api::instance::Instance;
use leasehold_client::api::overview::Overview;
use leasehold_client::{Client, ClientError};
use leasehold_core::Timestamp;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, timeout};

/// A slower server counts as unreachable.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);

/// The answers of one poll.
pub(super) struct ServerSnapshot {
    pub(super) overview: Overview,
    pub(super) instances: Vec<Instance>,
}

/// The result of one poll.
pub(super) enum PollResult {
    Snapshot(Box<ServerSnapshot>),
    Failed { why: String, at: Timestamp },
}

/// Polls once.
pub(super) async fn fetch(client: &Client) -> Result<ServerSnapshot, ClientError> {
    let both = async { tokio::try_join!(client.overview(), client.instance_list()) };
    let late = || ClientError::Unreachable("timed out".to_owned());
    let (overview, instances) = timeout(FETCH_TIMEOUT, both).await.map_err(|_| late())??;
    Ok(ServerSnapshot {
        overview,
        instances,
    })
}

/// Polls at every interval until the receiver is closed.
pub(super) async fn run(client: Client, every: Duration, results: mpsc::Sender<PollResult>) {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first tick is immediate; the caller has polled already.
    ticks.tick().await;
    loop {
        ticks.tick().await;
        let item = match fetch(&client).await {
            Ok(snapshot) => PollResult::Snapshot(Box::new(snapshot)),
            Err(error) => PollResult::Failed {
                why: last_cause(&error),
                at: Timestamp::now(),
            },
        };
        if results.send(item).await.is_err() {
            return;
        }
    }
}

/// The last cause of the error.
pub(super) fn last_cause(error: &ClientError) -> String {
    let text = error.to_string();
    match error {
        ClientError::Unreachable(_) => text.rsplit(": ").next().unwrap_or(&text).to_owned(),
        _ => text,
    }
}
