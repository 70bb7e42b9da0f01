//! A PostgreSQL server that is frozen, not dead: it acknowledges every packet and answers nothing. Every call ends by its own limit.
#![allow(clippy::unwrap_used)]

use leasehold_core::job::{JobClaim, JobRef};
use leasehold_core::{JobId, JsonText};
use leasehold_store::job::NewJob;
use leasehold_store::lock::LockRequest;
use leasehold_store::prune::Prune;
use leasehold_store::request::{Claim, ClaimRef};
use leasehold_store::{ErrorKind, Result, Store, fresh_id};
use leasehold_store_postgres::{PostgresOptions, PostgresStore};
use leasehold_testkit::{eventually, fresh_cluster, sized};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::block_in_place;
use tokio::time::timeout;

/// More than every limit of the test together.
const QUERY_TIMEOUT: Duration = Duration::from_secs(60);
const LEASE: Duration = Duration::from_secs(30);

fn claim() -> Claim {
    Claim {
        owner: "me".into(),
        batch: 10,
        kept_max: None,
        lease: Duration::from_secs(30),
        lock: None,
    }
}

fn no_request() -> Vec<ClaimRef> {
    vec![ClaimRef {
        request: fresh_id(),
        token: 1,
    }]
}

fn no_job() -> Vec<JobRef> {
    vec![JobRef {
        job: JobId(1),
        token: 1,
    }]
}

async fn fails<T: std::fmt::Debug>(name: &str, call: impl Future<Output = Result<T>>) {
    let outcome = timeout(QUERY_TIMEOUT, call).await;
    let error = outcome
        .unwrap_or_else(|_| panic!("{name} has no limit"))
        .unwrap_err();
    let is_unavailable = matches!(error.kind, ErrorKind::Unavailable(_));
    assert!(is_unavailable, "{name}: {error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_to_a_frozen_server_fail_as_unavailable_and_succeed_when_it_goes_on() {
    let cluster = block_in_place(|| fresh_cluster(&[("fsync", "off")]));
    let options = PostgresOptions {
        max_connections: 4,
        connect_timeout: Duration::from_secs(1),
        call_timeout: Duration::from_secs(1),
        ..PostgresOptions::new(cluster.url())
    };
    let store: Arc<dyn Store> = Arc::new(PostgresStore::new(&options).unwrap());
    store.schema_migrate().await.unwrap();
    let job = [NewJob::new("mail", "send", JsonText::default())];
    store.job_enqueue(&job).await.unwrap();
    let job_claim = JobClaim {
        queue: "mail".to_owned(),
        worker: "me".to_owned(),
        max: 1,
        lease: None,
    };
    let lock = LockRequest {
        name: "lock".into(),
        owner: "me".into(),
        at_most_for: Duration::from_secs(30),
    };
    // More connections than one, so that several freeze in use.
    let calls = (0..4).map(|_| store.now());
    futures::future::join_all(calls).await;

    let frozen = block_in_place(|| cluster.freeze());
    let (request_claim, prune) = (claim(), Prune::default());
    let (requests, jobs) = (no_request(), no_job());
    tokio::join!(
        fails("request_renew", store.request_renew("me", &requests, LEASE)),
        fails("job_renew", store.job_renew("me", &jobs, LEASE)),
        fails("now", store.now()),
        fails("job_enqueue", store.job_enqueue(&job)),
        fails("request_claim", store.request_claim(&request_claim)),
        fails("job_claim", store.job_claim(&job_claim)),
        fails("lock_acquire", store.lock_acquire(&lock)),
        fails("prune", store.prune(&prune)),
    );
    block_in_place(|| drop(frozen));
    let is_back = eventually(QUERY_TIMEOUT, async || {
        store.job_enqueue(&job).await.is_ok()
    });
    assert!(is_back.await, "the store did not reconnect");
    let claimed = store.job_claim(&job_claim).await.unwrap();
    assert_eq!(claimed.jobs.len(), 1);
}

/// A renewal is repeated, so it gives up sooner than a call.
#[tokio::test(flavor = "multi_thread")]
async fn renewals_on_a_frozen_server_fail_sooner_than_calls() {
    let cluster = block_in_place(|| fresh_cluster(&[("fsync", "off")]));
    let options = PostgresOptions {
        connect_timeout: Duration::from_secs(1),
        call_timeout: Duration::from_secs(60),
        ..PostgresOptions::new(cluster.url())
    };
    let store: Arc<dyn Store> = Arc::new(PostgresStore::new(&options).unwrap());
    store.schema_migrate().await.unwrap();
    let renew = || store.request_renew("me", &[], LEASE);
    let renew_jobs = || store.job_renew("me", &[], LEASE);
    // A connection for each. A connection that was used once or twice discards its plans first, which has a limit of its own.
    for _ in 0..3 {
        let (one, other) = tokio::join!(renew(), renew_jobs());
        assert!(one.is_ok() && other.is_ok());
    }
    for _ in 0..4 {
        store.workspace_find("none").await.unwrap();
    }

    let frozen = block_in_place(|| cluster.freeze());
    let begun = Instant::now();
    let renewals = async {
        tokio::join!(
            fails("request_renew", renew()),
            fails("job_renew", renew_jobs())
        );
        begun.elapsed()
    };
    let read = async {
        fails("workspace_find", store.workspace_find("none")).await;
        begun.elapsed()
    };
    // A read fails after thirty seconds, other calls after a minute.
    let (mut renewals, mut read) = (pin!(renewals), pin!(read));
    tokio::select! {
        renewed = &mut renewals => assert!(renewed >= Duration::from_secs(10), "{renewed:?}"),
        read = &mut read => panic!("a read failed after {read:?}, before the renewals"),
    }
    if sized(false, true) {
        let read = read.await;
        assert!(read >= Duration::from_secs(30), "{read:?}");
    }
    block_in_place(|| drop(frozen));
}
