//! Tells a call that waits for a lock from one that a busy machine delays. Knows no table.

use std::pin::pin;
use std::time::{Duration, Instant};

use leasehold_testkit::TestPostgres;
use tokio::time::timeout;
use tokio_postgres::NoTls;

const COMPUTE: &str = include_str!("../sql/compute.sql");

/// What one such statement takes on an idle machine.
const UNIT: Duration = Duration::from_millis(10);
/// A call that takes longer does not end by itself.
const HANGS: Duration = Duration::from_secs(60);

/// How long a call may take that meets a locked row: less than the two seconds for which the store waits for one at most.
const PROMPT: Duration = Duration::from_millis(1_500);

/// Returns what a call returns; fails if the call waits for a locked row.
pub(crate) async fn promptly<T>(call: impl Future<Output = T>) -> T {
    promptly_within(PROMPT, call).await
}

/// The same with another limit.
pub(crate) async fn promptly_within<T>(limit: Duration, call: impl Future<Output = T>) -> T {
    let (answer, is_prompt) = measured(limit, call).await;
    assert!(
        is_prompt,
        "the call waits for a lock of another transaction"
    );
    answer
}

/// Returns what a call returns, and whether it took at most `limit`. On a busy machine the limit is what that much computing takes beside the call:
/// other programs delay both, and a lock delays the call only.
pub(crate) async fn measured<T>(limit: Duration, call: impl Future<Output = T>) -> (T, bool) {
    let mut call = pin!(call);
    let first = limit / 3;
    if let Ok(answer) = timeout(first, &mut call).await {
        return (answer, true);
    }
    tokio::select! {
        biased;
        answer = &mut call => return (answer, true),
        () = compute(limit - first) => {}
    }
    let answer = timeout(HANGS, call).await;
    (
        answer.expect("the call waits for a lock and does not end"),
        false,
    )
}

/// Computes on the shared server: for `length` on an idle machine, and longer on a busy one.
async fn compute(length: Duration) {
    let begun = Instant::now();
    let server = TestPostgres::shared().url();
    let (client, connection) = tokio_postgres::connect(server, NoTls).await.unwrap();
    tokio::spawn(connection);
    for _ in 0..length.as_millis() / UNIT.as_millis() {
        client.query_one(COMPUTE, &[]).await.unwrap();
    }
    // On a machine that is faster.
    let rest = length.saturating_sub(begun.elapsed());
    let _ = timeout(rest, std::future::pending::<()>()).await;
}

#[tokio::test]
async fn call_that_takes_much_longer_than_its_limit_is_not_prompt() {
    let limit = Duration::from_millis(60);
    // The machine delays the call as it delays the computing that the limit is compared with.
    let (_, is_prompt) = measured(limit, compute(limit * 20)).await;
    assert!(!is_prompt);
    let ((), is_prompt) = measured(limit, std::future::ready(())).await;
    assert!(is_prompt);
}
