//! `leasehold instance`, `leasehold lock` and `leasehold changes`: server processes, their locks, and the stream of request changes.

use crate::command::Execute;
use crate::command_error::CommandResult;
use crate::display;
use crate::output::clean;
use crate::scope::{NameCache, WorkspaceFlag};
use crate::session::Session;
use clap::{Args, Subcommand};
use jiff::Timestamp;

/// Subcommands of `leasehold instance`.
#[derive(Subcommand, Clone, Debug)]
pub enum InstanceAction {
    /// List the server processes that use the store.
    List,
}

/// Subcommands of `leasehold lock`.
#[derive(Subcommand, Clone, Debug)]
pub enum LockAction {
    /// List the named locks and their holders.
    List,
}

/// Flags of `leasehold changes`.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ChangesArgs {
    /// Include all workspaces (requires an administrator key).
    #[arg(long, short = 'A')]
    all_workspaces: bool,
    /// Start with the oldest stored change instead of now.
    #[arg(long)]
    from_oldest: bool,
}

impl Execute for InstanceAction {
    async fn execute(self, session: &Session, _: &WorkspaceFlag) -> CommandResult {
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
                display::age(one.started_at, now),
                display::age(one.seen_at, now),
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

impl Execute for LockAction {
    async fn execute(self, session: &Session, _: &WorkspaceFlag) -> CommandResult {
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
                display::age(lock.locked_at, now),
                display::timestamp(lock.until),
                lock.token.to_string(),
            ]
        });
        let headings = ["LOCK", "STATE", "OWNER", "SINCE", "UNTIL", "TOKEN"];
        Ok(out.table(&headings, rows.collect())?)
    }
}

impl Execute for ChangesArgs {
    /// Streams changes until the process is stopped or standard output is closed.
    async fn execute(self, session: &Session, scope: &WorkspaceFlag) -> CommandResult {
        // Fails at once if the server is unreachable now; a server that becomes unreachable later is retried.
        session.me().await?;
        let workspace = match self.all_workspaces {
            true => None,
            false => Some(scope.id(session).await?),
        };
        let mut changes = session.client.changes(workspace);
        if self.from_oldest {
            changes = changes.from_oldest();
        }
        let (out, mut names) = (&session.out, NameCache::default());
        loop {
            let change = changes.next().await?;
            if out.is_json() {
                out.json_line(&change)?;
                continue;
            }
            let event = change.event;
            let mut parts = vec![display::timestamp(event.at)];
            if self.all_workspaces {
                parts.push(clean(&names.workspace(session, event.workspace).await));
            }
            parts.push(event.request.to_string());
            parts.push(display::request_status(out, &event.to));
            parts.extend(event.reason.as_deref().map(display::truncate));
            out.line(parts.join("  "))?;
        }
    }
}
