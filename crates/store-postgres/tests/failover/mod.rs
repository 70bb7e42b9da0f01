//! A server with a streaming replica, of which a test loses the last commits, and the store of a process that survives that.

use leasehold_core::JsonText;
use leasehold_core::job::JobClaim;
use leasehold_store::job::{JobStore, NewJob};
use leasehold_store::lock::{LockAcquired, LockRequest, LockStore};
use leasehold_store::{DatabaseStore, SchemaStore};
use leasehold_store_postgres::{PostgresOptions, PostgresStore};
use leasehold_testkit::{Cluster, SavedCluster, eventually, fresh_cluster};
use std::time::Duration;
use tokio::task::block_in_place;
use tokio_postgres::{Client, NoTls};

pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Connects to the server at this address.
pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A store that several processes open.
pub(crate) fn store(url: &str) -> PostgresStore {
    let options = PostgresOptions {
        connect_timeout: Duration::from_secs(2),
        ..PostgresOptions::new(url)
    };
    PostgresStore::new(&options).unwrap()
}

/// A primary and its replica. Stores get a list of both.
pub(crate) struct Replicated {
    primary: Cluster,
    replica: Cluster,
}

impl Replicated {
    /// Starts both servers, and migrates the database.
    pub(crate) async fn start() -> Self {
        let mut primary = block_in_place(|| fresh_cluster(&[("fsync", "off")]));
        let replica = block_in_place(|| primary.standby().unwrap());
        let both = Self { primary, replica };
        both.store().schema_migrate().await.unwrap();
        both
    }

    /// A store that connects to the one of the servers that accepts writes.
    pub(crate) fn store(&self) -> PostgresStore {
        let address = |url: String| {
            let (_, server) = url.split_once('@').unwrap();
            server.split('/').next().unwrap().to_owned()
        };
        let (one, two) = (address(self.primary.url()), address(self.replica.url()));
        store(&format!("postgres://postgres@{one},{two}/postgres"))
    }

    /// Stops the replication once the replica has everything: what is committed from now on will be lost.
    pub(crate) async fn detach_replica(&self) {
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
    pub(crate) async fn primary_client(&self) -> Client {
        connect(&self.primary.url()).await
    }

    /// Kills the primary and promotes the replica. Returns a connection to it.
    pub(crate) async fn fail_over(&mut self) -> Client {
        block_in_place(|| self.primary.kill().unwrap());
        let client = connect(&self.replica.url()).await;
        let promote = include_str!("../sql/replica_promote.sql");
        let row = client.query_one(promote, &[]).await.unwrap();
        assert!(row.get::<_, bool>("promoted"));
        client
    }
}

/// A server whose files a test replaces by older ones, as a restored backup without recovery.signal.
pub(crate) struct Rewindable(Cluster);

impl Rewindable {
    /// Starts the server, and migrates the database.
    pub(crate) async fn start() -> Self {
        let server = Self(block_in_place(|| fresh_cluster(&[("fsync", "off")])));
        server.store().schema_migrate().await.unwrap();
        server
    }

    pub(crate) fn store(&self) -> PostgresStore {
        store(&self.0.url())
    }

    pub(crate) async fn client(&self) -> Client {
        connect(&self.0.url()).await
    }

    pub(crate) fn save(&self) -> SavedCluster {
        block_in_place(|| self.0.save().unwrap())
    }

    pub(crate) fn restore(&mut self, saved: SavedCluster) {
        block_in_place(|| self.0.restore(saved).unwrap());
    }

    /// Restarts the server; nothing is lost.
    pub(crate) fn crash(&mut self) {
        block_in_place(|| self.0.restart_immediate().unwrap());
    }
}

/// Waits until the store has reconnected.
pub(crate) async fn reconnected(store: &PostgresStore) {
    let is_back = eventually(TIMEOUT, async || store.now().await.is_ok());
    assert!(is_back.await, "the store does not reconnect");
}

/// The causes of the epochs of the database.
pub(crate) async fn causes(client: &Client) -> Vec<String> {
    let rows = client.query(include_str!("../sql/epoch_list.sql"), &[]);
    let rows = rows.await.unwrap();
    rows.iter().map(|row| row.get("cause")).collect()
}

/// Numbers that a process got from the database.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    pub(crate) jobs: Vec<i64>,
    pub(crate) tokens: Vec<i64>,
    pub(crate) locks: Vec<i64>,
}

/// Enqueues and claims jobs one by one, and acquires a lock as often.
pub(crate) async fn draw_numbers(store: &PostgresStore, count: usize) -> Numbers {
    let mut numbers = Numbers::default();
    for n in 0..count {
        let job = [NewJob::new("mail", "send", JsonText::default())];
        numbers
            .jobs
            .push(store.job_enqueue(&job).await.unwrap()[0].id.0);
        let claim = JobClaim {
            queue: "mail".to_owned(),
            worker: "me".to_owned(),
            max: 1,
            lease: None,
        };
        let claimed = store.job_claim(&claim).await.unwrap();
        numbers
            .tokens
            .extend(claimed.jobs.iter().map(|job| job.token));
        let lock = LockRequest {
            name: format!("lock {}", n % 2),
            owner: "me".into(),
            at_most_for: Duration::from_secs(60),
        };
        let LockAcquired::Acquired { token, .. } = store.lock_acquire(&lock).await.unwrap() else {
            panic!("the lock is held");
        };
        numbers.locks.push(token.token);
        assert!(store.lock_release(&token, Duration::ZERO).await.unwrap());
    }
    assert_eq!(numbers.tokens.len(), count);
    numbers
}

/// Asserts that no number of `after` was drawn before, and all are higher.
pub(crate) fn assert_higher(before: &Numbers, after: &Numbers) {
    for (name, before, after) in [
        ("job", &before.jobs, &after.jobs),
        ("token", &before.tokens, &after.tokens),
        ("lock", &before.locks, &after.locks),
    ] {
        let (highest, lowest) = (before.iter().max(), after.iter().min());
        assert!(highest < lowest, "{name}: {highest:?}, then {lowest:?}");
    }
}
