//! Pages of leases in the database: found by token, judged by owner and time, written back. Knows nothing of what became of the jobs.

use crate::error::Fault;
use crate::job::page::{self, Entry, MOST};
use crate::row::Text;
use crate::session::Session;
use leasehold_core::job::JobRef;
use leasehold_store::ErrorKind;
use leasehold_store::sql;
use rusqlite::{Row, params};
use std::collections::HashMap;

const ADD: &str = sql!("job/lease_add");
const GET: &str = sql!("job/lease_get");
const SET: &str = sql!("job/lease_set");
const REMOVE: &str = sql!("job/lease_remove");
const LIST: &str = sql!("job/lease_list");
const LIST_OF_NODES: &str = sql!("job/lease_list_of_nodes");
const TAKE_TOKENS: &str = sql!("job/take_tokens");

/// One claim's jobs, as far as its worker still has them.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) token: i64,
    pub(super) queue: i64,
    pub(super) worker: String,
    pub(super) claimed_at: i64,
    pub(super) entries: Vec<Entry>,
    /// Whether nodes of graphs may be among them.
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
            ErrorKind::Broken(format!("the page of leases {token} makes no sense"))
        })?,
        nodes: row.get(6)?,
    })
}

fn size(entries: &[Entry]) -> i64 {
    i64::try_from(entries.len()).unwrap_or(i64::MAX)
}

/// Every page there is.
pub(super) fn all(session: &Session<'_>) -> Result<Vec<Page>, Fault> {
    session.all(LIST, [], read)
}

/// The pages of a queue in which nodes of graphs may be.
pub(super) fn of_nodes(session: &Session<'_>, queue: i64) -> Result<Vec<Page>, Fault> {
    session.all(LIST_OF_NODES, [queue], read)
}

/// Writes the leases of a claim, each page with a token of its own, and returns the first of these tokens.
pub(super) fn add(
    session: &Session<'_>,
    queue: i64,
    worker: &str,
    entries: &[Entry],
    nodes: bool,
) -> Result<i64, Fault> {
    let pages = i64::try_from(entries.len().div_ceil(MOST)).unwrap_or(i64::MAX);
    let last: i64 = session.one(TAKE_TOKENS, [pages], |row| Ok(row.get(0)?))?;
    let first = last - pages + 1;
    session.often(ADD, |statement| {
        for (token, entries) in (first..).zip(entries.chunks(MOST)) {
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

/// Writes back what is left of a page.
pub(super) fn put(session: &Session<'_>, page: &Page) -> Result<(), Fault> {
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

/// The pages that one call of a worker looks at, each read once and written once.
pub(super) struct Held<'a> {
    session: &'a Session<'a>,
    worker: &'a str,
    pages: HashMap<i64, Option<Touched>>,
}

struct Touched {
    page: Page,
    changed: bool,
}

impl<'a> Held<'a> {
    pub(super) fn by(session: &'a Session<'a>, worker: &'a str) -> Self {
        Self {
            session,
            worker,
            pages: HashMap::new(),
        }
    }

    /// The page and the place in it of a lease that the worker has and that has not expired.
    fn find(&mut self, claim: JobRef) -> Result<Option<(&mut Touched, usize)>, Fault> {
        if !self.pages.contains_key(&claim.token) {
            let page = self.session.maybe(GET, [claim.token], read)?;
            let ours = page.filter(|page| page.worker == self.worker);
            let touched = ours.map(|page| Touched {
                page,
                changed: false,
            });
            self.pages.insert(claim.token, touched);
        }
        let now = self.session.now;
        let touched = self.pages.get_mut(&claim.token).and_then(Option::as_mut);
        Ok(touched.and_then(|touched| {
            let entries = touched.page.entries.iter();
            let at = entries
                .into_iter()
                .position(|entry| entry.job == claim.job.0 && entry.ends_at > now)?;
            Some((touched, at))
        }))
    }

    /// Whether the worker has it.
    pub(super) fn has(&mut self, claim: JobRef) -> Result<bool, Fault> {
        Ok(self.find(claim)?.is_some())
    }

    /// Whether the worker has it, and it may be a node of a graph.
    pub(super) fn may_be_node(&mut self, claim: JobRef) -> Result<bool, Fault> {
        Ok(self
            .find(claim)?
            .is_some_and(|(touched, _)| touched.page.nodes))
    }

    /// Has a lease end at another time; false if the worker has it no longer.
    pub(super) fn extend(&mut self, claim: JobRef, until: i64) -> Result<bool, Fault> {
        let Some((touched, at)) = self.find(claim)? else {
            return Ok(false);
        };
        touched.page.entries[at].ends_at = until;
        touched.changed = true;
        Ok(true)
    }

    /// Takes a lease from the worker; none if it has it no longer.
    pub(super) fn take(&mut self, claim: JobRef) -> Result<Option<(Entry, &Page)>, Fault> {
        Ok(self.find(claim)?.map(|(touched, at)| {
            touched.changed = true;
            (touched.page.entries.remove(at), &touched.page)
        }))
    }

    /// Writes back what was changed.
    pub(super) fn put(self) -> Result<(), Fault> {
        let changed = self.pages.into_values().flatten().filter(|t| t.changed);
        changed
            .into_iter()
            .try_for_each(|touched| put(self.session, &touched.page))
    }
}
