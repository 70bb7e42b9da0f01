//! A plain connection that hears every notification, as another program would. Knows nothing of the store.

use crate::support::raw;
use futures::StreamExt;
use leasehold_testkit::TestDatabase;
use tokio::sync::mpsc;
use tokio_postgres::{AsyncMessage, Client, NoTls};

const LISTEN: &str = include_str!("../../sql/wake/listen.sql");
const RING: &str = include_str!("../../sql/wake/ring.sql");

/// Sent last, so that what was sent before it has been heard.
const FENCE: &str = "fence";

/// Hears what is sent in a database.
pub(crate) struct Ear {
    heard: mpsc::UnboundedReceiver<String>,
    mouth: Client,
    _listens: Client,
}

impl Ear {
    pub(crate) async fn new(database: &TestDatabase) -> Self {
        let (client, mut connection) = tokio_postgres::connect(database.url(), NoTls)
            .await
            .unwrap();
        let (tell, heard) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut messages =
                futures::stream::poll_fn(move |context| connection.poll_message(context));
            while let Some(Ok(message)) = messages.next().await {
                if let AsyncMessage::Notification(notification) = message {
                    tell.send(notification.payload().to_owned()).unwrap();
                }
            }
        });
        client.batch_execute(LISTEN).await.unwrap();
        Self {
            heard,
            mouth: raw::connect(database).await,
            _listens: client,
        }
    }

    /// What was sent since the last time: notifications arrive in the order of their commits.
    pub(crate) async fn hear(&mut self) -> Vec<String> {
        self.mouth.query(RING, &[&FENCE]).await.unwrap();
        let mut heard = Vec::new();
        while let Some(word) = self.heard.recv().await {
            if word == FENCE {
                return heard;
            }
            heard.push(word);
        }
        panic!("the connection is lost after {heard:?}");
    }
}
