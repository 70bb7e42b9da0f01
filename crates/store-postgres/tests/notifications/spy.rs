//! A plain connection that receives every notification. Knows nothing of the store.

use crate::support::raw;
use futures::StreamExt;
use leasehold_testkit::TestDatabase;
use tokio::sync::mpsc;
use tokio_postgres::{AsyncMessage, Client, NoTls};

const LISTEN: &str = include_str!("../../sql/notification/listen.sql");
const NOTIFY: &str = include_str!("../../sql/notification/notify.sql");

/// Sent last: when it arrives, all earlier notifications have arrived.
const FENCE: &str = "fence";

/// Records the notifications of a database.
pub(crate) struct NotificationSpy {
    payloads: mpsc::UnboundedReceiver<String>,
    sender: Client,
    _listener: Client,
}

impl NotificationSpy {
    pub(crate) async fn new(database: &TestDatabase) -> Self {
        let (client, mut connection) =
            tokio_postgres::connect(&database.url_in("leasehold"), NoTls)
                .await
                .unwrap();
        let (received, payloads) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut messages =
                futures::stream::poll_fn(move |context| connection.poll_message(context));
            while let Some(Ok(message)) = messages.next().await {
                if let AsyncMessage::Notification(notification) = message {
                    received.send(notification.payload().to_owned()).unwrap();
                }
            }
        });
        client.batch_execute(LISTEN).await.unwrap();
        Self {
            payloads,
            sender: raw::connect(database).await,
            _listener: client,
        }
    }

    /// Returns the notifications since the last call; they arrive in commit order.
    pub(crate) async fn received(&mut self) -> Vec<String> {
        self.sender.query(NOTIFY, &[&FENCE]).await.unwrap();
        let mut found = Vec::new();
        while let Some(payload) = self.payloads.recv().await {
            if payload == FENCE {
                return found;
            }
            found.push(payload);
        }
        panic!("connection lost after {found:?}");
    }
}
