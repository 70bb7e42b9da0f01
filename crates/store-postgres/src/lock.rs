//! Named locks in PostgreSQL.

use crate::error::{self, is_lock_timeout};
use crate::row::{self, micros};
use crate::store::{PostgresStore, sql};
use async_trait::async_trait;
use leasehold_store::Result;
use leasehold_store::lock::{LockAcquired, LockRequest, LockState, LockStore, LockToken};
use std::time::Duration;

#[async_trait]
impl LockStore for PostgresStore {
    async fn lock_acquire(&self, request: &LockRequest) -> Result<LockAcquired> {
        loop {
            let taken = self
                .heartbeat(
                    "lock_acquire",
                    sql!("lock/acquire"),
                    &[
                        &self.given_now(),
                        &request.name,
                        &request.owner,
                        &micros(request.at_most_for),
                    ],
                )
                .await?;
            if let Some(row) = taken.first() {
                let token = LockToken {
                    name: request.name.clone(),
                    owner: request.owner.clone(),
                    token: row.get("fencing_token"),
                };
                return Ok(LockAcquired::Acquired {
                    token,
                    until: row::time(row, "lock_until")?,
                });
            }
            let holder = self
                .heartbeat("lock_acquire", sql!("lock/holder"), &[&request.name])
                .await?;
            if let Some(row) = holder.first() {
                return Ok(LockAcquired::Held {
                    by: row.get("locked_by"),
                    until: row::time(row, "lock_until")?,
                });
            }
        }
    }

    async fn lock_extend(&self, token: &LockToken, at_most_for: Duration) -> Result<bool> {
        let extended = self
            .heartbeat(
                "lock_extend",
                sql!("lock/extend"),
                &[
                    &self.given_now(),
                    &token.name,
                    &token.owner,
                    &token.token,
                    &micros(at_most_for),
                ],
            )
            .await;
        let has_waited = match extended {
            Ok(rows) if !rows.is_empty() => return Ok(true),
            Ok(_) => false,
            Err(error) if is_lock_timeout(&error) => true,
            Err(error) => return Err(error),
        };
        let record = self
            .heartbeat(
                "lock_extend",
                sql!("lock/record"),
                &[&token.name, &token.owner, &token.token],
            )
            .await?;
        let is = |column| record.iter().any(|row| row.get::<_, bool>(column));
        // While another transaction has locked the row, no instance can acquire the lock, even if its time has passed.
        match is("names_holder") && (has_waited || !is("is_free")) {
            true => Err(error::busy("lock_extend")),
            false => Ok(false),
        }
    }

    async fn lock_release(&self, token: &LockToken, at_least_for: Duration) -> Result<bool> {
        let released = self
            .heartbeat(
                "lock_release",
                sql!("lock/release"),
                &[
                    &self.given_now(),
                    &token.name,
                    &token.owner,
                    &token.token,
                    &micros(at_least_for),
                ],
            )
            .await?;
        Ok(!released.is_empty())
    }

    async fn lock_list(&self) -> Result<Vec<LockState>> {
        let rows = self.heartbeat("lock_list", sql!("lock/list"), &[]).await?;
        rows.iter()
            .map(|row| {
                Ok(LockState {
                    name: row.get("name"),
                    owner: row.get("locked_by"),
                    locked_at: row::time(row, "locked_at")?,
                    until: row::time(row, "lock_until")?,
                    token: row.get("fencing_token"),
                })
            })
            .collect()
    }
}
