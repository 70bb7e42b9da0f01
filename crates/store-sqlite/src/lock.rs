//! Named locks. The operation's start time decides whether a lock has expired.

use crate::SqliteStore;
use crate::error::Fault;
use crate::row::{Columns, Text, later, micros, timestamp};
use crate::session::Session;
use async_trait::async_trait;
use leasehold_store::Result;
use leasehold_store::lock::{LockAcquired, LockRequest, LockState, LockStore, LockToken};
use leasehold_store::sql;
use rusqlite::{Row, params};
use std::time::Duration;

const ACQUIRE: &str = sql!("lock/acquire");
const GET: &str = sql!("lock/get");
const EXTEND: &str = sql!("lock/extend");
const RELEASE: &str = sql!("lock/release");
const HOLDS: &str = sql!("lock/holds");
const LIST: &str = sql!("lock/list");

#[async_trait]
impl LockStore for SqliteStore {
    async fn lock_acquire(&self, request: &LockRequest) -> Result<LockAcquired> {
        let request = request.clone();
        self.write("lock_acquire", move |s| acquire(s, &request))
            .await
    }

    async fn lock_extend(&self, token: &LockToken, at_most_for: Duration) -> Result<bool> {
        let token = token.clone();
        self.write("lock_extend", move |s| {
            let row = params![
                Text(&token.name),
                Text(&token.owner),
                token.token,
                s.now,
                later(s.now, at_most_for)
            ];
            Ok(s.run(EXTEND, row)? > 0)
        })
        .await
    }

    async fn lock_release(&self, token: &LockToken, at_least_for: Duration) -> Result<bool> {
        let token = token.clone();
        self.write("lock_release", move |s| release(s, &token, at_least_for))
            .await
    }

    async fn lock_list(&self) -> Result<Vec<LockState>> {
        self.read("lock_list", |s| s.all(LIST, [], state)).await
    }
}

fn acquire(session: &Session<'_>, request: &LockRequest) -> Result<LockAcquired, Fault> {
    let until = later(session.now, request.at_most_for);
    let row = params![
        Text(&request.name),
        until,
        session.now,
        Text(&request.owner)
    ];
    let acquired = session.optional(ACQUIRE, row, |row| Ok(row.get::<_, i64>(0)?))?;
    if let Some(token) = acquired {
        let token = LockToken {
            name: request.name.clone(),
            owner: request.owner.clone(),
            token,
        };
        return Ok(LockAcquired::Acquired {
            token,
            until: timestamp(until)?,
        });
    }
    let held = session.one(GET, [Text(&request.name)], state)?;
    Ok(LockAcquired::Held {
        by: held.owner,
        until: held.until,
    })
}

fn release(
    session: &Session<'_>,
    token: &LockToken,
    at_least_for: Duration,
) -> Result<bool, Fault> {
    let row = params![
        Text(&token.name),
        Text(&token.owner),
        token.token,
        session.now,
        // At most half of i64::MAX, so that the sum in the statement cannot overflow.
        micros(at_least_for).min(i64::MAX / 2)
    ];
    Ok(session.run(RELEASE, row)? > 0)
}

/// Whether this token still holds the lock.
pub(crate) fn holds(session: &Session<'_>, token: &LockToken) -> Result<bool, Fault> {
    let row = params![
        Text(&token.name),
        Text(&token.owner),
        token.token,
        session.now
    ];
    session.one(HOLDS, row, |row| Ok(row.get(0)?))
}

fn state(row: &Row<'_>) -> Result<LockState, Fault> {
    Ok(LockState {
        name: row.get("name")?,
        owner: row.get("locked_by")?,
        locked_at: row.time("locked_at")?,
        until: row.time("lock_until")?,
        token: row.get("fencing_token")?,
    })
}
