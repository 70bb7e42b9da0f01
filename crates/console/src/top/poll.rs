//! One look at the server, and a look every so often.

use leasehold_client::api::instance::Instance;
use leasehold_client::api::overview::Overview;
use leasehold_client::{Client, ClientError};
use leasehold_core::Timestamp;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, timeout};

/// A server that takes longer is as good as away.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a look found.
pub(super) struct Seen {
    pub(super) overview: Overview,
    pub(super) instances: Vec<Instance>,
}

/// What became of a look.
pub(super) enum News {
    Seen(Box<Seen>),
    Lost { why: String, at: Timestamp },
}

/// Looks once.
pub(super) async fn look(client: &Client) -> Result<Seen, ClientError> {
    let both = async { tokio::try_join!(client.overview(), client.instance_list()) };
    let late = || ClientError::Unreachable("no answer in time".to_owned());
    let (overview, instances) = timeout(PATIENCE, both).await.map_err(|_| late())??;
    Ok(Seen {
        overview,
        instances,
    })
}

/// Looks every so often, until nobody wants to hear of it.
pub(super) async fn run(client: Client, every: Duration, news: mpsc::Sender<News>) {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first comes at once, and there was a look before.
    ticks.tick().await;
    loop {
        ticks.tick().await;
        let item = match look(&client).await {
            Ok(seen) => News::Seen(Box::new(seen)),
            Err(error) => News::Lost {
                why: short(&error),
                at: Timestamp::now(),
            },
        };
        if news.send(item).await.is_err() {
            return;
        }
    }
}

/// The last cause: the rest is said already.
pub(super) fn short(error: &ClientError) -> String {
    let text = error.to_string();
    match error {
        ClientError::Unreachable(_) => text.rsplit(": ").next().unwrap_or(&text).to_owned(),
        _ => text,
    }
}
