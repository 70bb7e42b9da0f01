//! Callers that do everything wrong, again and again, each in its own way.

use crate::served::LoadTarget;
use leasehold_testkit::HttpConnection;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::{interval, timeout};

/// A call is given up after so long, to begin another.
const PATIENCE: Duration = Duration::from_secs(15);

pub(crate) async fn bother(target: Arc<LoadTarget>, number: u32, stopped: Arc<AtomicUsize>) {
    for round in number.. {
        if stopped.load(Ordering::Acquire) == 1 {
            return;
        }
        if let Ok(connection) = HttpConnection::open(target.address).await {
            let _ = timeout(PATIENCE, bad_call(&target, connection, round)).await;
        }
    }
}

async fn bad_call(
    target: &LoadTarget,
    mut connection: HttpConnection,
    round: u32,
) -> std::io::Result<()> {
    let (path, key) = (target.requests(), &target.key);
    let head = |length: usize| {
        format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        )
    };
    match round % 8 {
        // Not HTTP at all.
        0 => connection.send(&noise(round)).await?,
        // A head that never ends.
        1 => {
            connection.send(b"GET / HTTP/1.1\r\n").await?;
            drip(&mut connection, b"x-slow: 1\r\n").await?;
        }
        // A head that is too long.
        2 => {
            let long = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "a".repeat(300_000));
            connection.send(long.as_bytes()).await?;
        }
        // A body that comes a byte at a time.
        3 => {
            connection.send(head(10_000).as_bytes()).await?;
            drip(&mut connection, b" ").await?;
        }
        // A body that is promised and never comes; the connection breaks off.
        4 => return connection.send(head(500_000).as_bytes()).await,
        // A body that is too large.
        5 => {
            connection.send(head(1 << 30).as_bytes()).await?;
            connection.send(&vec![b'['; 1 << 20]).await?;
        }
        // Nonsense with a good key, as fast as it goes.
        6 => {
            for _ in 0..50 {
                let deep = "[".repeat(50_000);
                let body = Some(deep.as_bytes());
                connection.call("POST", &path, key, body).await?;
            }
            return Ok(());
        }
        // Wrong keys, as fast as it goes.
        _ => {
            for _ in 0..200 {
                connection.call("GET", &path, "lh_admin_x", None).await?;
            }
            return Ok(());
        }
    }
    connection.closed().await;
    Ok(())
}

/// Sends a little, again and again, until the other side has had enough.
async fn drip(connection: &mut HttpConnection, drop: &[u8]) -> std::io::Result<()> {
    let mut pace = interval(Duration::from_millis(200));
    loop {
        pace.tick().await;
        connection.send(drop).await?;
    }
}

/// Bytes without a meaning, different every time and the same in every run.
fn noise(seed: u32) -> Vec<u8> {
    let mut state = u64::from(seed) | 1;
    (0..4_096)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        })
        .collect()
}
