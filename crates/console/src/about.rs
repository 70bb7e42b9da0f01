//! `leasehold instance`, `leasehold lock` and `leasehold changes`: the servers themselves, and what happens in them.

use crate::command::Act;
use crate::output::clean;
use crate::scope::{Names, WorkspaceFlag};
use crate::session::Session;
use crate::shown;
use crate::trouble::Outcome;
use clap::{Args, Subcommand};
use jiff::Timestamp;

/// What to do with instances.
#[derive(Subcommand, Clone, Debug)]
pub enum InstanceAction {
    /// Lists the processes that serve the store.
    List,
}

/// What to do with locks.
#[derive(Subcommand, Clone, Debug)]
pub enum LockAction {
    /// Lists the named locks and who holds them.
    List,
}

/// Which changes to follow.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Changes {
    /// Those of all workspaces; for administrators.
    #[arg(long, short = 'A')]
    all_workspaces: bool,
    /// Begin with the oldest that is kept, not now.
    #[arg(long)]
    from_oldest: bool,
}

impl Act for InstanceAction {
    async fn act(self, session: &Session, _: &WorkspaceFlag) -> Outcome {
        let instances = session.client.instance_list().await?;
        let out = &session.out;
        if out.is_json() {
            return Ok(out.json(&instances)?);
        }
        let now = Timestamp::now();
        let rows = instances.iter().map(|one| {
            vec![
                clean(&one.id),
                clean(&one.version),
                clean(one.listens.as_deref().unwrap_or_default()),
                if one.dispatches { "yes" } else { "no" }.to_owned(),
                shown::age(one.started_at, now),
                shown::age(one.seen_at, now),
            ]
        });
        let headings = [
            "INSTANCE",
            "VERSION",
            "LISTENS",
            "DISPATCHES",
            "STARTED",
            "SEEN",
        ];
        Ok(out.table(&headings, rows.collect())?)
    }
}

impl Act for LockAction {
    async fn act(self, session: &Session, _: &WorkspaceFlag) -> Outcome {
        let locks = session.client.lock_list().await?;
        let out = &session.out;
        if out.is_json() {
            return Ok(out.json(&locks)?);
        }
        let now = Timestamp::now();
        let rows = locks.iter().map(|lock| {
            vec![
                clean(&lock.name),
                if lock.held { "held" } else { "free" }.to_owned(),
                clean(&lock.owner),
                shown::age(lock.locked_at, now),
                shown::moment(lock.until),
                lock.token.to_string(),
            ]
        });
        let headings = ["LOCK", "STATE", "TAKEN BY", "SINCE", "UNTIL", "TOKEN"];
        Ok(out.table(&headings, rows.collect())?)
    }
}

impl Act for Changes {
    /// Follows until it is told to stop, or nobody reads any more.
    async fn act(self, session: &Session, scope: &WorkspaceFlag) -> Outcome {
        // A server that is not there is told at once; one that goes away later is waited for.
        session.me().await?;
        let workspace = match self.all_workspaces {
            true => None,
            false => Some(scope.id(session).await?),
        };
        let mut changes = session.client.changes(workspace);
        if self.from_oldest {
            changes = changes.from_oldest();
        }
        let (out, mut names) = (&session.out, Names::default());
        loop {
            let change = changes.next().await?;
            if out.is_json() {
                out.json_line(&change)?;
                continue;
            }
            let event = change.event;
            let mut parts = vec![shown::moment(event.at)];
            if self.all_workspaces {
                parts.push(clean(&names.workspace(session, event.workspace).await));
            }
            parts.push(event.request.to_string());
            parts.push(shown::request_status(out, event.to));
            parts.extend(event.reason.as_deref().map(shown::cut));
            out.line(parts.join("  "))?;
        }
    }
}
