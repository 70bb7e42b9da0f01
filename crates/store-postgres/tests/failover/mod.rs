//! A server with a streaming replica, of which a test loses the last commits, and the store of a process that survives that.

use leasehold_store::{DatabaseStore, SchemaStore};
use leasehold_store_postgres::{PostgresOptions, PostgresStore};
use leasehold_testkit::{Cluster, SavedCluster, eventually, fresh_cluster};
use std::time::Duration;
use tokio::task::block_in_place;
use tokio_postgres::{Client, NoTls};

const TIMEOUT: Duration = Duration::from_secs(60);

/// Connects to the server at this address.
pub(super) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A store that several processes open.
pub(super) fn store(url: &str) -> PostgresStore {
    let options = PostgresOptions {
        connect_timeout: Duration::from_secs(2),
        ..PostgresOptions::new(url)
    };
    PostgresStore::new(&options).unwrap()
}

/// A primary and its replica. Stores get a list of both.
pub(super) struct Replicated {
    primary: Cluster,
    replica: Cluster,
}

impl Replicated {
    /// Starts both servers, and migrates the database.
    pub(super) async fn start() -> Self {
        let mut primary = block_in_place(|| fresh_cluster(&[("fsync", "off")]));
        let replica = block_in_place(|| primary.standby().unwrap());
        let both = Self { primary, replica };
        both.store().schema_migrate().await.unwrap();
        both
    }

    /// A store that connects to the one of the servers that accepts writes.
    pub(super) fn store(&self) -> PostgresStore {
        let address = |url: String| {
            let (_, server) = url.split_once('@').unwrap();
            server.split('/').next().unwrap().to_owned()
        };
        let (one, two) = (address(self.primary.url()), address(self.replica.url()));
        store(&format!("postgres://postgres@{one},{two}/postgres"))
    }

    /// Stops the replication once the replica has everything: what is committed from now on will be lost.
    pub(super) async fn detach_replica(&self) {
        let (primary, replica) = (
            connect(&self.primary.url()).await,
            connect(&self.replica.url()).await,
        );
        let written = include_str!("../sql/replica_written.sql");
        let written: String = primary.query_one(written, &[]).await.unwrap().get(0);
        let is_replayed = eventually(TIMEOUT, async || {
            let replayed = include_str!("../sql/replica_replayed.sql");
            let row = replica.query_one(replayed, &[&written]).await.unwrap();
            row.get::<_, Option<bool>>("replayed").unwrap_or(false)
        });
        assert!(is_replayed.await, "the replica does not replay");
        for statement in [
            include_str!("../sql/replica_detach.sql"),
            include_str!("../sql/replica_reload.sql"),
        ] {
            replica.execute(statement, &[]).await.unwrap();
        }
        let is_detached = eventually(TIMEOUT, async || {
            let receives = include_str!("../sql/replica_receives.sql");
            let row = replica.query_one(receives, &[]).await.unwrap();
            !row.get::<_, bool>("receives")
        });
        assert!(is_detached.await, "the replica still receives");
    }

    /// Connects to the primary.
    pub(super) async fn primary_client(&self) -> Client {
        connect(&self.primary.url()).await
    }

    /// Kills the primary and promotes the replica. Returns a connection to it.
    pub(super) async fn fail_over(&mut self) -> Client {
        block_in_place(|| self.primary.kill().unwrap());
        let client = connect(&self.replica.url()).await;
        let promote = include_str!("../sql/replica_promote.sql");
        let row = client.query_one(promote, &[]).await.unwrap();
        assert!(row.get::<_, bool>("promoted"));
        client
    }
}

/// A server whose files a test replaces by older ones, as a restored backup without recovery.signal.
pub(super) struct Rewindable(Cluster);

impl Rewindable {
    /// Starts the server, and migrates the database.
    pub(super) async fn start() -> Self {
        let server = Self(block_in_place(|| fresh_cluster(&[("fsync", "off")])));
        server.store().schema_migrate().await.unwrap();
        server
    }

    pub(super) fn store(&self) -> PostgresStore {
        store(&self.0.url())
    }

    pub(super) async fn client(&self) -> Client {
        connect(&self.0.url()).await
    }

    pub(super) fn save(&self) -> SavedCluster {
        block_in_place(|| self.0.save().unwrap())
    }

    pub(super) fn restore(&mut self, saved: SavedCluster) {
        block_in_place(|| self.0.restore(saved).unwrap());
    }

    /// Restarts the server; nothing is lost.
    pub(super) fn crash(&mut self) {
        block_in_place(|| self.0.restart_immediate().unwrap());
    }
}

/// Waits until the store has reconnected.
pub(super) async fn reconnected(store: &PostgresStore) {
    let is_back = eventually(TIMEOUT, async || store.now().await.is_ok());
    assert!(is_back.await, "the store does not reconnect");
}

/// The causes of the epochs of the database.
pub(super) async fn causes(client: &Client) -> Vec<String> {
    let rows = client.query(include_str!("../sql/epoch_list.sql"), &[]);
    let rows = rows.await.unwrap();
    rows.iter().map(|row| row.get("cause")).collect()
}
