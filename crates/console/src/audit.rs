//! `leasehold audit`: shows which key made which change.

use crate::command::Execute;
use crate::command_error::CommandResult;
use crate::display;
use crate::listing::Listing;
use crate::output::clean;
use crate::scope::{NameCache, WorkspaceFlag};
use crate::session::Session;
use clap::{Args, Subcommand};
use leasehold_client::AuditFilter;
use leasehold_client::api::audit::AuditEntry;
use leasehold_core::KeyId;

/// Subcommands of `leasehold audit`.
#[derive(Subcommand, Clone, Debug)]
pub enum AuditAction {
    /// List changes to keys, workspaces, limits, queues and definitions, newest first.
    List(ListAudit),
}

/// Flags of `leasehold audit list`.
#[derive(Args, Clone, Debug)]
pub struct ListAudit {
    /// Show entries of this workspace only, by name or id.
    #[arg(long, value_name = "NAME|ID")]
    for_workspace: Option<String>,
    /// Show changes by this key only.
    #[arg(long, value_name = "ID")]
    by_key: Option<KeyId>,
    /// Show changes of this kind only, such as key_create or workspace_update.
    #[arg(long, value_name = "ACTION")]
    action: Option<String>,
    #[command(flatten)]
    listing: Listing,
}

impl Execute for AuditAction {
    async fn execute(self, session: &Session, _: &WorkspaceFlag) -> CommandResult {
        let Self::List(list) = self;
        let workspace = match &list.for_workspace {
            Some(named) => Some(session.workspace(named).await?),
            None => None,
        };
        let filter = AuditFilter {
            workspace,
            key: list.by_key,
            action: list.action,
        };
        let headings = ["TIME", "ACTION", "TARGET", "WORKSPACE", "BY", "DETAILS"];
        let rows = async |items: &[AuditEntry]| {
            let (mut names, mut rows) = (NameCache::default(), Vec::new());
            for entry in items {
                let workspace = match entry.workspace {
                    Some(id) => clean(&names.workspace(session, id).await),
                    None => String::new(),
                };
                let by = match entry.key {
                    Some(id) => format!("{} ({id})", clean(&entry.actor)),
                    None => clean(&entry.actor),
                };
                rows.push(vec![
                    display::timestamp(entry.at),
                    clean(&entry.action),
                    clean(&entry.target),
                    workspace,
                    by,
                    display::truncate(&clean(&entry.details.to_string())),
                ]);
            }
            Ok(rows)
        };
        let entries = session.client.audit_list(&filter);
        let none = "no audit entries";
        list.listing
            .print(session, entries, &headings, none, rows)
            .await
    }
}
