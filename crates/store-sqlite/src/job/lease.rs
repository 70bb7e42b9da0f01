//! Pages of leases in the database: found by token, checked for worker and expiry, written back. Knows nothing of how jobs end.

use crate::error::Fault;
use crate::job::page::{self, Entry, PAGE_CAPACITY};
use crate::row::Text;
use crate::session::Session;
use leasehold_core::job::JobRef;
use leasehold_store::ErrorKind;
use leasehold_store::sql;
use rusqlite::{Params, Row, params};
use std::collections::HashMap;

const ADD: &str = sql!("job/lease_add");
const GET: &str = sql!("job/lease_get");
const SET: &str = sql!("job/lease_set");
const REMOVE: &str = sql!("job/lease_remove");
const LIST: &str = sql!("job/lease_list");
const LIST_OF_QUEUE: &str = sql!("job/lease_list_of_queue");
const LIST_OF_NODES: &str = sql!("job/lease_list_of_nodes");
const TAKE_TOKENS: &str = sql!("job/take_tokens");

/// Up to 64 leases of one claim, without those that were finished or lost.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) token: i64,
    pub(super) queue: i64,
    pub(super) worker: String,
    pub(super) claimed_at: i64,
    pub(super) entries: Vec<Entry>,
    /// Whether some of the jobs may run graph nodes.
    pub(super) nodes: bool,
}

pub(super) fn read(row: &Row<'_>) -> Result<Page, Fault> {
    let (token, text) = (row.get(0)?, row.get_ref(5)?);
    let entries = text
        .as_str()
        .ok()
        .and_then(|text| page::read(text, row.get(4).ok()?));
    Ok(Page {
        token,
        queue: row.get(1)?,
        worker: row.get(2)?,
        claimed_at: row.get(3)?,
        entries: entries.ok_or_else(|| {
            ErrorKind::Broken(format!("job_lease.jobs of token {token} is invalid"))
        })?,
        nodes: row.get(6)?,
    })
}

fn size(entries: &[Entry]) -> i64 {
    i64::try_from(entries.len()).unwrap_or(i64::MAX)
}

/// Returns all pages.
pub(super) fn all(session: &Session<'_>) -> Result<Vec<Page>, Fault> {
    readable(session, LIST, [])
}

/// Returns the pages of a queue.
pub(super) fn of_queue(session: &Session<'_>, queue: i64) -> Result<Vec<Page>, Fault> {
    readable(session, LIST_OF_QUEUE, [queue])
}

/// Returns the pages of a queue that may contain graph nodes.
pub(super) fn of_nodes(session: &Session<'_>, queue: i64) -> Result<Vec<Page>, Fault> {
    readable(session, LIST_OF_NODES, [queue])
}

/// Returns the pages that can be read: a corrupt page concerns its own jobs only.
fn readable(session: &Session<'_>, sql: &str, params: impl Params) -> Result<Vec<Page>, Fault> {
    let found = session.all(sql, params, |row| Ok((row.get(0)?, read(row))))?;
    let mut pages = Vec::with_capacity(found.len());
    for (token, page) in found {
        pages.extend(or_skipped(session, token, page)?);
    }
    Ok(pages)
}

/// Returns none, and reports it, if the page with this token cannot be read.
fn or_skipped(
    session: &Session<'_>,
    token: i64,
    page: Result<Page, Fault>,
) -> Result<Option<Page>, Fault> {
    match page {
        Ok(page) => Ok(Some(page)),
        Err(fault) => {
            session.skip_broken(format_args!("job_lease {token}"), fault)?;
            Ok(None)
        }
    }
}

/// Inserts the leases of a claim, each page with its own token, and returns the first token.
pub(super) fn add(
    session: &Session<'_>,
    queue: i64,
    worker: &str,
    entries: &[Entry],
    nodes: bool,
) -> Result<i64, Fault> {
    let pages = i64::try_from(entries.len().div_ceil(PAGE_CAPACITY)).unwrap_or(i64::MAX);
    let last: i64 = session.one(TAKE_TOKENS, [pages], |row| Ok(row.get(0)?))?;
    let first = last - pages + 1;
    session.with_statement(ADD, |statement| {
        for (token, entries) in (first..).zip(entries.chunks(PAGE_CAPACITY)) {
            let expires_at = page::first_end(entries).unwrap_or(session.now);
            statement.execute(params![
                token,
                queue,
                Text(worker),
                session.now,
                expires_at,
                size(entries),
                page::write(entries, expires_at),
                nodes
            ])?;
        }
        Ok(first)
    })
}

/// Writes a page back, or deletes it if no lease is left.
pub(super) fn write_back(session: &Session<'_>, page: &Page) -> Result<(), Fault> {
    match page::first_end(&page.entries) {
        None => session.run(REMOVE, [page.token])?,
        Some(end) => session.run(
            SET,
            params![
                page.token,
                end,
                size(&page.entries),
                page::write(&page.entries, end)
            ],
        )?,
    };
    Ok(())
}

/// The pages used by one call of a worker, each read once and written once.
pub(super) struct WorkerLeases<'a> {
    session: &'a Session<'a>,
    worker: &'a str,
    pages: HashMap<i64, Option<LoadedPage>>,
}

struct LoadedPage {
    page: Page,
    changed: bool,
}

impl<'a> WorkerLeases<'a> {
    pub(super) fn new(session: &'a Session<'a>, worker: &'a str) -> Self {
        Self {
            session,
            worker,
            pages: HashMap::new(),
        }
    }

    /// Finds a lease of this worker that has not expired: its page and its position there.
    fn find(&mut self, claim: JobRef) -> Result<Option<(&mut LoadedPage, usize)>, Fault> {
        if !self.pages.contains_key(&claim.token) {
            let found = self
                .session
                .optional(GET, [claim.token], |row| Ok(read(row)))?;
            // The leases of a corrupt page are lost, because nothing confirms them; those of other pages are not.
            let page = match found {
                Some(page) => or_skipped(self.session, claim.token, page)?,
                None => None,
            };
            let own = page.filter(|page| page.worker == self.worker);
            let loaded = own.map(|page| LoadedPage {
                page,
                changed: false,
            });
            self.pages.insert(claim.token, loaded);
        }
        let now = self.session.now;
        let loaded = self.pages.get_mut(&claim.token).and_then(Option::as_mut);
        Ok(loaded.and_then(|loaded| {
            let entries = loaded.page.entries.iter();
            let at = entries
                .into_iter()
                .position(|entry| entry.job == claim.job.0 && entry.ends_at > now)?;
            Some((loaded, at))
        }))
    }

    /// Whether the worker holds the lease.
    pub(super) fn has(&mut self, claim: JobRef) -> Result<bool, Fault> {
        Ok(self.find(claim)?.is_some())
    }

    /// Whether the worker holds the lease and the job may run a graph node.
    pub(super) fn may_be_node(&mut self, claim: JobRef) -> Result<bool, Fault> {
        Ok(self
            .find(claim)?
            .is_some_and(|(loaded, _)| loaded.page.nodes))
    }

    /// Sets the end of a lease; false if the worker has lost it.
    pub(super) fn extend(&mut self, claim: JobRef, until: i64) -> Result<bool, Fault> {
        let Some((loaded, at)) = self.find(claim)? else {
            return Ok(false);
        };
        loaded.page.entries[at].ends_at = until;
        loaded.changed = true;
        Ok(true)
    }

    /// Removes a lease; none if the worker has lost it.
    pub(super) fn take(&mut self, claim: JobRef) -> Result<Option<(Entry, &Page)>, Fault> {
        Ok(self.find(claim)?.map(|(loaded, at)| {
            loaded.changed = true;
            (loaded.page.entries.remove(at), &loaded.page)
        }))
    }

    /// Writes the changed pages back.
    pub(super) fn write_back(self) -> Result<(), Fault> {
        let changed = self.pages.into_values().flatten().filter(|t| t.changed);
        changed
            .into_iter()
            .try_for_each(|loaded| write_back(self.session, &loaded.page))
    }
}
