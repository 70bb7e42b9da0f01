//! An operation's view of the database: it runs statements and holds the operation's timestamp. Knows no table.

use crate::broken_items::BrokenItem;
use crate::error::Fault;
use crate::notification::NotifyTarget;
use leasehold_core::Timestamp;
use leasehold_store::{Clock, ErrorKind, sql};
use rusqlite::{CachedStatement, Connection, Params, Row, Rows, Statement, StatementStatus};
use std::cell::{Cell, RefCell};
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

const ITEM: &str = sql!("transaction/item");
const ITEM_RELEASE: &str = sql!("transaction/item_release");
const ITEM_ROLLBACK: &str = sql!("transaction/item_rollback");

/// One operation's view of a connection.
pub(crate) struct Session<'c> {
    connection: &'c Connection,
    /// The operation's current time in microseconds, read once when it begins.
    pub(crate) now: i64,
    cost: Cell<Cost>,
    /// Notifications to send once the writes are durable.
    notifications: RefCell<Vec<NotifyTarget>>,
    /// Items that the operation skipped.
    broken: RefCell<Vec<BrokenItem>>,
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
    /// Statements that SQLite compiled again.
    pub recompiled: u64,
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
            broken: RefCell::default(),
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

    /// Works on one of many items in a savepoint of its own. Returns none if that fails or panics: the item's writes are rolled back, the item is reported,
    /// and the others go on.
    ///
    /// # Errors
    /// The store is unavailable, so the others would fail too.
    pub(crate) fn isolated<T>(
        &self,
        item: impl Display,
        work: impl FnOnce() -> Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        match self.in_savepoint(work)? {
            Ok(done) => Ok(Some(done)),
            Err(fault) => {
                self.skip_broken(item, fault)?;
                Ok(None)
            }
        }
    }

    /// Works on many items in one savepoint; only if one of them fails, on each in a savepoint of its own, as [`Session::isolated`] does.
    pub(crate) fn isolated_if_one_fails<I: Display, T>(
        &self,
        items: &[I],
        mut work: impl FnMut(&I) -> Result<T, Fault>,
    ) -> Result<Vec<Option<T>>, Fault> {
        let all =
            self.in_savepoint(|| items.iter().map(&mut work).collect::<Result<Vec<T>, _>>())?;
        match all {
            Ok(all) => Ok(all.into_iter().map(Some).collect()),
            Err(_) => items
                .iter()
                .map(|item| self.isolated(item, || work(item)))
                .collect(),
        }
    }

    /// Rolls the writes of the work back if it fails or panics. The outer error is one of the store, so the transaction is of no use.
    fn in_savepoint<T>(
        &self,
        work: impl FnOnce() -> Result<T, Fault>,
    ) -> Result<Result<T, Fault>, Fault> {
        self.run(ITEM, [])?;
        let notified = self.notifications.borrow().len();
        match caught(work) {
            Err(fault) if fault.is_of_store() => Err(fault),
            Err(fault) => {
                self.run(ITEM_ROLLBACK, [])?;
                self.run(ITEM_RELEASE, [])?;
                self.notifications.borrow_mut().truncate(notified);
                Ok(Err(fault))
            }
            Ok(done) => {
                self.run(ITEM_RELEASE, [])?;
                Ok(Ok(done))
            }
        }
    }

    /// Reports one of many items that cannot be read or changed, so that the operation goes on without it.
    ///
    /// # Errors
    /// The fault itself, if it does not concern this item alone.
    pub(crate) fn skip_broken(&self, item: impl Display, fault: Fault) -> Result<(), Fault> {
        if fault.is_of_store() {
            return Err(fault);
        }
        self.broken.borrow_mut().push(BrokenItem {
            item: item.to_string(),
            fault: fault.kind(),
        });
        Ok(())
    }

    /// Takes the items that were skipped.
    pub(crate) fn take_broken(&self) -> Vec<BrokenItem> {
        self.broken.take()
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
        cost.recompiled += status(StatementStatus::RePrepare);
        cost.statements += 1;
        self.cost.set(cost);
    }
}

/// Returns what the work returns; a panic is an error.
pub(crate) fn caught<T>(work: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let message = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        Err(ErrorKind::Broken(format!("the operation panicked: {message}")).into())
    })
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
