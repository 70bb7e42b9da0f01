//! Servers that lose the last commits, and the store of a process that survives that.

use leasehold_core::JsonText;
use leasehold_core::job::JobClaim;
use leasehold_store::job::{JobStore, NewJob};
use leasehold_store::lock::{LockAcquired, LockRequest, LockStore};
use leasehold_store::{DatabaseStore, SchemaStore};
use leasehold_store_postgres::{PostgresOptions, PostgresStore};
use leasehold_testkit::{Cluster, FailoverPair, SavedCluster, eventually, fresh_cluster};
use std::time::Duration;
use tokio::task::block_in_place;
use tokio_postgres::{Client, NoTls};

pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// More than PostgreSQL logs of a sequence in advance.
pub(crate) const LOST: usize = 40;

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

/// A primary and its replica, with a migrated database.
pub(crate) async fn replicated() -> FailoverPair {
    let servers = FailoverPair::start();
    store(&servers.url()).schema_migrate().await.unwrap();
    servers
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

    /// `host:port` of the server.
    pub(crate) fn address(&self) -> String {
        leasehold_testbed::postgres::server_of(&self.0.url()).to_owned()
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
