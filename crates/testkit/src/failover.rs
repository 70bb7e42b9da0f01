//! A server with a streaming replica, of which a test loses the last commits: the replica stops receiving, the primary is killed, the replica promoted.

use std::time::Duration;

use tokio::task::block_in_place;
use tokio_postgres::Client;

use crate::cluster::{Cluster, fresh_cluster};
use crate::postgres::connect;
use crate::statement::{
    REPLICA_DETACH, REPLICA_PROMOTE, REPLICA_RECEIVES, REPLICA_RELOAD, REPLICA_REPLAYED,
    REPLICA_WRITTEN,
};
use crate::wait::eventually;

const TIMEOUT: Duration = Duration::from_secs(60);

/// A primary and its replica. Needs a runtime with several threads.
pub struct FailoverPair {
    primary: Cluster,
    replica: Cluster,
}

impl FailoverPair {
    /// Starts both servers.
    ///
    /// # Panics
    /// When PostgreSQL is not installed or does not start.
    #[must_use]
    pub fn start() -> Self {
        block_in_place(|| {
            let mut primary = fresh_cluster(&[("fsync", "off")]);
            let replica = primary.standby();
            let replica = replica.unwrap_or_else(|error| panic!("failed to start: {error}"));
            Self { primary, replica }
        })
    }

    /// The address of both: a store connects to the one that accepts writes.
    #[must_use]
    pub fn url(&self) -> String {
        let address = |cluster: &Cluster| format!("127.0.0.1:{}", cluster.server.port());
        let (one, two) = (address(&self.primary), address(&self.replica));
        format!("postgres://postgres@{one},{two}/postgres")
    }

    /// Connects to the primary.
    ///
    /// # Panics
    /// When it does not answer.
    pub async fn primary_client(&self) -> Client {
        connect(&self.primary.url()).await
    }

    /// Stops the replication once the replica has everything: what is committed from now on will be lost.
    ///
    /// # Panics
    /// When the replica does not replay or still receives.
    pub async fn detach_replica(&self) {
        let (primary, replica) = (
            self.primary_client().await,
            connect(&self.replica.url()).await,
        );
        let written = ask(&primary, REPLICA_WRITTEN).await;
        let is_replayed = eventually(TIMEOUT, async || {
            let row = replica.query_one(REPLICA_REPLAYED, &[&written]).await;
            let row = row.unwrap_or_else(|error| panic!("{error}"));
            row.get::<_, Option<bool>>("replayed").unwrap_or(false)
        });
        assert!(is_replayed.await, "the replica does not replay");
        for statement in [REPLICA_DETACH, REPLICA_RELOAD] {
            let done = replica.execute(statement, &[]).await;
            done.unwrap_or_else(|error| panic!("{error}"));
        }
        let is_detached = eventually(TIMEOUT, async || {
            let row = replica.query_one(REPLICA_RECEIVES, &[]).await;
            let row = row.unwrap_or_else(|error| panic!("{error}"));
            !row.get::<_, bool>("receives")
        });
        assert!(is_detached.await, "the replica still receives");
    }

    /// Kills the primary and promotes the replica. Returns a connection to it.
    ///
    /// # Panics
    /// When the replica is not promoted.
    pub async fn fail_over(&mut self) -> Client {
        let killed = block_in_place(|| self.primary.kill());
        killed.unwrap_or_else(|error| panic!("failed to kill the primary: {error}"));
        let client = connect(&self.replica.url()).await;
        let row = client.query_one(REPLICA_PROMOTE, &[]).await;
        let row = row.unwrap_or_else(|error| panic!("{error}"));
        assert!(row.get::<_, bool>("promoted"));
        client
    }
}

async fn ask(client: &Client, statement: &str) -> String {
    let row = client.query_one(statement, &[]).await;
    row.unwrap_or_else(|error| panic!("{error}")).get(0)
}
