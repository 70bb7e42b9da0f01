//! `leasehold dead-letter`: lists failed requests and redrives them.

use crate::bulk::BulkProgress;
use crate::command::Execute;
use crate::command_error::CommandResult;
use crate::input;
use crate::listing::Listing;
use crate::request::{headings, rows};
use crate::scope::WorkspaceFlag;
use crate::session::Session;
use clap::Subcommand;
use leasehold_client::api::request::{RedriveMany, Request};
use leasehold_core::{DefinitionId, FailureReason, WorkspaceId};

/// Subcommands of `leasehold dead-letter`.
#[derive(Subcommand, Clone, Debug)]
pub enum DeadLetterAction {
    /// List failed requests, newest first.
    List {
        /// Only requests that failed for this reason.
        #[arg(long, value_parser = input::reason(), ignore_case = true)]
        reason: Option<FailureReason>,
        /// Only requests of this definition, by name or id.
        #[arg(long, value_name = "NAME|ID")]
        definition: Option<String>,
        #[command(flatten)]
        listing: Listing,
    },
    /// Redrive failed requests that were not redriven yet, oldest first.
    Redrive {
        /// Only requests that failed for this reason.
        #[arg(long, value_parser = input::reason(), ignore_case = true)]
        reason: Option<FailureReason>,
        /// Only requests of this definition, by name or id.
        #[arg(long, value_name = "NAME|ID")]
        definition: Option<String>,
        /// Maximum number of requests.
        #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "all")]
        limit: u32,
        /// Redrive all of them.
        #[arg(long)]
        all: bool,
    },
}

/// Maximum number of requests per call.
const BATCH: u32 = 1_000;

impl Execute for DeadLetterAction {
    async fn execute(self, session: &Session, scope: &WorkspaceFlag) -> CommandResult {
        let workspace = scope.id(session).await?;
        match self {
            Self::List {
                reason,
                definition,
                listing,
            } => {
                let definition = definition_id(session, workspace, definition).await?;
                let client = &session.client;
                let list = client.dead_letter_list(workspace, reason, definition);
                let none = "no dead letters";
                let rows = async |items: &[Request]| rows(session, items, false).await;
                listing
                    .print(session, list, headings(false), none, rows)
                    .await
            }
            Self::Redrive {
                reason,
                definition,
                limit,
                all,
            } => {
                let limit = (!all).then_some(u64::from(limit));
                let which = RedriveMany {
                    reason,
                    definition: definition_id(session, workspace, definition).await?,
                    limit: None,
                };
                redrive(session, workspace, which, limit).await
            }
        }
    }
}

async fn definition_id(
    session: &Session,
    workspace: WorkspaceId,
    definition: Option<String>,
) -> CommandResult<Option<DefinitionId>> {
    match definition {
        Some(name) => Ok(Some(session.definition(workspace, &name).await?)),
        None => Ok(None),
    }
}

async fn redrive(
    session: &Session,
    workspace: WorkspaceId,
    which: RedriveMany,
    limit: Option<u64>,
) -> CommandResult {
    let mut bulk = BulkProgress::new("redriven", limit);
    loop {
        let left = limit.map_or(u64::from(BATCH), |limit| limit - bulk.done());
        let batch = u32::try_from(left).unwrap_or(BATCH).min(BATCH);
        if batch == 0 {
            break;
        }
        let which = RedriveMany {
            limit: Some(batch),
            ..which
        };
        let redriven = session.client.dead_letter_redrive(workspace, which).await;
        let redriven = bulk.with_progress(redriven.map_err(|error| session.failure(error)))?;
        if session.out.is_json() {
            for one in &redriven {
                session.out.json_line(one)?;
            }
        }
        // A call may redrive fewer than requested while more are left.
        if redriven.is_empty() {
            break;
        }
        let count = redriven.len();
        bulk.step(count, count as u64);
    }
    bulk.end();
    Ok(())
}
