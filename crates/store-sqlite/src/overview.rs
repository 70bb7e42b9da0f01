//! What goes on in all workspaces and queues, read from what triggers keep of each: no request is counted for it, and jobs only as far as is asked.

use crate::error::Fault;
use crate::row::{Columns, moment};
use crate::session::Session;
use crate::{queue, workspace};
use leasehold_core::limits::PAGE_MAX;
use leasehold_store::queue::QueueUse;
use leasehold_store::workspace::{WorkspaceOverview, WorkspaceUse};
use rusqlite::params;

const TOTAL: &str = include_str!("../sql/workspace/total.sql");
const WORKSPACES: &str = include_str!("../sql/workspace/overview.sql");
const QUEUES: &str = include_str!("../sql/queue/overview.sql");
const COUNT_READY: &str = include_str!("../sql/queue/count_ready.sql");

pub(crate) fn workspaces(session: &Session<'_>, limit: u32) -> Result<WorkspaceOverview, Fault> {
    session.at_once(|session| {
        let total =
            |row: &rusqlite::Row<'_>| Ok((row.count("workspaces")?, workspace::counted(row)?));
        let (workspaces, requests) = session.one(TOTAL, [], total)?;
        let busiest = session.all(WORKSPACES, [limit.min(PAGE_MAX)], |row| {
            Ok(WorkspaceUse {
                workspace: workspace::workspace(row)?,
                slots: workspace::slot_use(row)?,
                requests: workspace::counted(row)?,
            })
        })?;
        Ok(WorkspaceOverview {
            at: moment(session.now)?,
            workspaces,
            requests,
            busiest,
        })
    })
}

pub(crate) fn queues(
    session: &Session<'_>,
    limit: u32,
    up_to: u32,
) -> Result<Vec<QueueUse>, Fault> {
    session.at_once(|session| {
        let running = session.all(QUEUES, [limit.min(PAGE_MAX)], |row| {
            Ok((queue::known(row)?, row.count("running")?))
        })?;
        let counted = |(known, running): (queue::Known, u64)| {
            // One more than is asked for tells whether there are more.
            let row = params![known.id, session.now, i64::from(up_to) + 1];
            let waiting = session.one(COUNT_READY, row, |row| row.count("ready"))?;
            let up_to = u64::from(up_to);
            Ok(QueueUse {
                queue: known.queue,
                running,
                waiting: waiting.min(up_to),
                more_waiting: waiting > up_to,
            })
        };
        running.into_iter().map(counted).collect()
    })
}
