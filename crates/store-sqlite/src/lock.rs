//! Named locks, judged by the moment the operation began.

use crate::error::Fault;
use crate::row::{Columns, Text, later, length, moment};
use crate::session::Session;
use leasehold_store::lock::{LockAcquired, LockRequest, LockState, LockToken};
use rusqlite::{Row, params};
use std::time::Duration;

const ACQUIRE: &str = include_str!("../sql/lock/acquire.sql");
const GET: &str = include_str!("../sql/lock/get.sql");
const EXTEND: &str = include_str!("../sql/lock/extend.sql");
const RELEASE: &str = include_str!("../sql/lock/release.sql");
const HOLDS: &str = include_str!("../sql/lock/holds.sql");
const LIST: &str = include_str!("../sql/lock/list.sql");

pub(crate) fn acquire(session: &Session<'_>, request: &LockRequest) -> Result<LockAcquired, Fault> {
    let until = later(session.now, request.at_most_for);
    let row = params![
        Text(&request.name),
        until,
        session.now,
        Text(&request.owner)
    ];
    let taken = session.maybe(ACQUIRE, row, |row| Ok(row.get::<_, i64>(0)?))?;
    if let Some(token) = taken {
        let token = LockToken {
            name: request.name.clone(),
            owner: request.owner.clone(),
            token,
        };
        return Ok(LockAcquired::Acquired {
            token,
            until: moment(until)?,
        });
    }
    let held = session.one(GET, [Text(&request.name)], state)?;
    Ok(LockAcquired::Held {
        by: held.owner,
        until: held.until,
    })
}

pub(crate) fn extend(
    session: &Session<'_>,
    token: &LockToken,
    at_most_for: Duration,
) -> Result<bool, Fault> {
    let row = params![
        Text(&token.name),
        Text(&token.owner),
        token.token,
        session.now,
        later(session.now, at_most_for)
    ];
    Ok(session.run(EXTEND, row)? > 0)
}

pub(crate) fn release(
    session: &Session<'_>,
    token: &LockToken,
    at_least_for: Duration,
) -> Result<bool, Fault> {
    let row = params![
        Text(&token.name),
        Text(&token.owner),
        token.token,
        session.now,
        // Half of what fits, so that the sum in the statement cannot overflow.
        length(at_least_for).min(i64::MAX / 2)
    ];
    Ok(session.run(RELEASE, row)? > 0)
}

/// Whether the lock is still held with this token.
pub(crate) fn holds(session: &Session<'_>, token: &LockToken) -> Result<bool, Fault> {
    let row = params![
        Text(&token.name),
        Text(&token.owner),
        token.token,
        session.now
    ];
    session.one(HOLDS, row, |row| Ok(row.get(0)?))
}

pub(crate) fn list(session: &Session<'_>) -> Result<Vec<LockState>, Fault> {
    session.all(LIST, [], state)
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
