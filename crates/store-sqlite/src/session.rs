//! An operation's view of the database: it runs statements and holds the operation's timestamp. Knows no table.

use crate::error::Fault;
use crate::notification::NotifyTarget;
use leasehold_core::Timestamp;
use leasehold_store::Clock;
use rusqlite::{CachedStatement, Connection, Params, Row, Rows, Statement, StatementStatus};
use std::cell::{Cell, RefCell};

/// One operation's view of a connection.
pub(crate) struct Session<'c> {
    connection: &'c Connection,
    /// The operation's current time in microseconds, read once when it begins.
    pub(crate) now: i64,
    cost: Cell<Cost>,
    /// Notifications to send once the writes are durable.
    notifications: RefCell<Vec<NotifyTarget>>,
}

/// What statements cost SQLite, independent of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Instructions of SQLite's virtual machine, triggers included.
    pub steps: u64,
    /// Rows visited by full scans.
    pub scanned: u64,
    /// Sorts without an index.
    pub sorts: u64,
    /// Statements run.
    pub statements: u64,
}

impl<'c> Session<'c> {
    pub(crate) fn new(connection: &'c Connection, clock: &Clock) -> Self {
        let now = clock.now().unwrap_or_else(Timestamp::now);
        Self {
            connection,
            now: now.as_microsecond(),
            cost: Cell::default(),
            notifications: RefCell::default(),
        }
    }

    /// Runs a statement and returns how many rows it wrote, without those of triggers.
    pub(crate) fn run(&self, sql: &str, params: impl Params) -> Result<usize, Fault> {
        let mut statement = self.prepare(sql)?;
        let written = statement.execute(params);
        self.count(&statement);
        Ok(written?)
    }

    /// Returns the first row, if any.
    pub(crate) fn optional<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        let mut statement = self.prepare(sql)?;
        let (mut found, mut read) = (None, Some(read));
        // Reads the first row only. A statement that also writes is complete only after its last step.
        for_each_row(statement.query(params)?, &mut |row| {
            if let Some(read) = read.take() {
                found = Some(read(row)?);
            }
            Ok(())
        })?;
        self.count(&statement);
        Ok(found)
    }

    /// Returns the first row; fails if there is none.
    pub(crate) fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        self.optional(sql, params, read)?
            .ok_or(Fault::Sqlite(rusqlite::Error::QueryReturnedNoRows))
    }

    /// Returns all rows.
    pub(crate) fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        mut read: impl FnMut(&Row<'_>) -> Result<T, Fault>,
    ) -> Result<Vec<T>, Fault> {
        let mut statement = self.prepare(sql)?;
        let mut found = Vec::new();
        for_each_row(statement.query(params)?, &mut |row| {
            found.push(read(row)?);
            Ok(())
        })?;
        self.count(&statement);
        Ok(found)
    }

    /// Passes a prepared statement to `work`, which may run it many times.
    pub(crate) fn with_statement<T>(
        &self,
        sql: &str,
        work: impl FnOnce(&mut Statement<'_>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let mut statement = self.prepare(sql)?;
        let outcome = work(&mut statement);
        self.count(&statement);
        outcome
    }

    /// Runs all queries of `read` on one snapshot.
    pub(crate) fn in_snapshot<T>(
        &self,
        read: impl FnOnce(&Self) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        if !self.connection.is_autocommit() {
            return read(self);
        }
        // Rolled back on drop: it only reads.
        let _snapshot = self.connection.unchecked_transaction()?;
        read(self)
    }

    /// Runs the statements of a migration script.
    pub(crate) fn run_batch(&self, sql: &str) -> Result<(), Fault> {
        Ok(self.connection.execute_batch(sql)?)
    }

    /// Returns what the operation has cost so far.
    pub(crate) fn cost(&self) -> Cost {
        self.cost.get()
    }

    /// Queues a notification, sent once the writes are durable.
    pub(crate) fn notify(&self, target: impl Into<NotifyTarget>) {
        let (target, mut notifications) = (target.into(), self.notifications.borrow_mut());
        if !notifications.contains(&target) {
            notifications.push(target);
        }
    }

    /// Takes the queued notifications.
    pub(crate) fn take_notifications(&self) -> Vec<NotifyTarget> {
        self.notifications.take()
    }

    fn prepare(&self, sql: &str) -> Result<CachedStatement<'_>, Fault> {
        Ok(self.connection.prepare_cached(sql)?)
    }

    fn count(&self, statement: &Statement<'_>) {
        let status = |status| u64::try_from(statement.reset_status(status)).unwrap_or_default();
        let mut cost = self.cost.get();
        cost.steps += status(StatementStatus::VmStep);
        cost.scanned += status(StatementStatus::FullscanStep);
        cost.sorts += status(StatementStatus::Sort);
        cost.statements += 1;
        self.cost.set(cost);
    }
}

/// Passes each row to `read`. Not generic, so that it is compiled once.
fn for_each_row(
    mut rows: Rows<'_>,
    read: &mut dyn FnMut(&Row<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    while let Some(row) = rows.next()? {
        read(row)?;
    }
    Ok(())
}
