//! `leasehold dead-letter`: requests that have failed, and giving them another chance.

use crate::bulk::Bulk;
use crate::command::Act;
use crate::input;
use crate::listing::Listing;
use crate::request::{headings, rows};
use crate::scope::WorkspaceFlag;
use crate::session::Session;
use crate::trouble::Outcome;
use clap::Subcommand;
use leasehold_client::api::request::{RedriveMany, Request};
use leasehold_core::{FailureReason, WorkspaceId};

/// What to do with dead letters.
#[derive(Subcommand, Clone, Debug)]
pub enum DeadLetterAction {
    /// Lists requests that have failed, newest first.
    List {
        /// Only those that failed for this reason.
        #[arg(long, value_parser = input::reason(), ignore_case = true)]
        reason: Option<FailureReason>,
        #[command(flatten)]
        listing: Listing,
    },
    /// Enqueues failed requests anew that never were, oldest first.
    Redrive {
        /// Only those that failed for this reason.
        #[arg(long, value_parser = input::reason(), ignore_case = true)]
        reason: Option<FailureReason>,
        /// How many at most.
        #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "all")]
        limit: u32,
        /// All there are.
        #[arg(long)]
        all: bool,
    },
}

/// As many in a call.
const BATCH: u32 = 1_000;

impl Act for DeadLetterAction {
    async fn act(self, session: &Session, scope: &WorkspaceFlag) -> Outcome {
        let workspace = scope.id(session).await?;
        match self {
            Self::List { reason, listing } => {
                let list = session.client.dead_letter_list(workspace, reason);
                let none = "there are no dead letters";
                let rows = async |items: &[Request]| rows(session, items, false).await;
                listing
                    .print(session, list, headings(false), none, rows)
                    .await
            }
            Self::Redrive { reason, limit, all } => {
                let limit = (!all).then_some(u64::from(limit));
                redrive(session, workspace, reason, limit).await
            }
        }
    }
}

async fn redrive(
    session: &Session,
    workspace: WorkspaceId,
    reason: Option<FailureReason>,
    limit: Option<u64>,
) -> Outcome {
    let mut bulk = Bulk::new("enqueued anew", limit);
    loop {
        let left = limit.map_or(u64::from(BATCH), |limit| limit - bulk.done());
        let batch = u32::try_from(left).unwrap_or(BATCH).min(BATCH);
        if batch == 0 {
            break;
        }
        let which = RedriveMany {
            reason,
            limit: Some(batch),
        };
        let redriven = session.client.dead_letter_redrive(workspace, which).await;
        let redriven = bulk.stopped(redriven.map_err(|error| session.failure(error)))?;
        if session.out.is_json() {
            for one in &redriven {
                session.out.json_line(one)?;
            }
        }
        let count = redriven.len();
        bulk.step(count, count as u64);
        if count < batch as usize {
            break;
        }
    }
    bulk.end();
    Ok(())
}
