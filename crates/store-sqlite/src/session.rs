//! What an operation sees of the database: statements by their text, and the one moment it judges by. Knows no table.

use crate::error::Fault;
use crate::wake::Ring;
use leasehold_core::Timestamp;
use leasehold_store::Clock;
use rusqlite::{Connection, Params, Row, Statement, StatementStatus};
use std::cell::{Cell, RefCell};

/// One operation's view of a connection.
pub(crate) struct Session<'c> {
    connection: &'c Connection,
    /// The moment the operation judges by, in microseconds: taken once, when it begins.
    pub(crate) now: i64,
    cost: Cell<Cost>,
    /// What to ring for once what was written is durable.
    rings: RefCell<Vec<Ring>>,
}

/// What statements cost SQLite, whatever machine they ran on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Instructions of SQLite's virtual machine, those of triggers included.
    pub steps: u64,
    /// Rows stepped over in scans without an index.
    pub scanned: u64,
    /// Sorts that no index did.
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
            rings: RefCell::default(),
        }
    }

    /// Runs a statement and returns how many rows it wrote itself.
    pub(crate) fn run(&self, sql: &str, params: impl Params) -> Result<usize, Fault> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let written = statement.execute(params);
        self.count(&statement);
        Ok(written?)
    }

    /// The first row, if there is any.
    pub(crate) fn maybe<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(params)?;
        let found = match rows.next()? {
            Some(row) => Some(read(row)?),
            None => None,
        };
        // A statement that also writes is done only when it has been stepped to its end.
        while rows.next()?.is_some() {}
        drop(rows);
        self.count(&statement);
        Ok(found)
    }

    /// The one row that must be there.
    pub(crate) fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        self.maybe(sql, params, read)?
            .ok_or(Fault::Sqlite(rusqlite::Error::QueryReturnedNoRows))
    }

    /// Every row.
    pub(crate) fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        mut read: impl FnMut(&Row<'_>) -> Result<T, Fault>,
    ) -> Result<Vec<T>, Fault> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(params)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(read(row)?);
        }
        drop(rows);
        self.count(&statement);
        Ok(found)
    }

    /// Has a statement run as often as `work` wants, looked up only once.
    pub(crate) fn often<T>(
        &self,
        sql: &str,
        work: impl FnOnce(&mut Statement<'_>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let worked = work(&mut statement);
        self.count(&statement);
        worked
    }

    /// Has all that `read` asks answered as of one moment.
    pub(crate) fn at_once<T>(
        &self,
        read: impl FnOnce(&Self) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        if !self.connection.is_autocommit() {
            return read(self);
        }
        // Rolled back when dropped: there is nothing to keep of what was only read.
        let _moment = self.connection.unchecked_transaction()?;
        read(self)
    }

    /// Runs the many statements of a migration.
    pub(crate) fn run_all(&self, sql: &str) -> Result<(), Fault> {
        Ok(self.connection.execute_batch(sql)?)
    }

    /// What the operation has cost so far.
    pub(crate) fn cost(&self) -> Cost {
        self.cost.get()
    }

    /// Has sleepers woken once what was written is durable.
    pub(crate) fn ring(&self, ring: impl Into<Ring>) {
        let (ring, mut rings) = (ring.into(), self.rings.borrow_mut());
        if !rings.contains(&ring) {
            rings.push(ring);
        }
    }

    /// What to ring for; nothing from now on.
    pub(crate) fn take_rings(&self) -> Vec<Ring> {
        self.rings.take()
    }

    fn count(&self, statement: &Statement<'_>) {
        let taken = |status| u64::try_from(statement.reset_status(status)).unwrap_or_default();
        let mut cost = self.cost.get();
        cost.steps += taken(StatementStatus::VmStep);
        cost.scanned += taken(StatementStatus::FullscanStep);
        cost.sorts += taken(StatementStatus::Sort);
        cost.statements += 1;
        self.cost.set(cost);
    }
}
