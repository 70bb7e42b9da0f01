//! The queues that a graph's workspace may not use, found when its nodes are to start. A step that was refused is rolled back and made again
//! with these queues known: its node fails.

use crate::queue_access;
use crate::session::Session;
use leasehold_core::WorkspaceId;
use leasehold_core::graph::GraphChange;
use leasehold_store::{Error, ErrorKind, Result};
use std::collections::HashSet;

/// Queues that were refused. Usually none, which costs nothing.
#[derive(Default)]
pub(super) struct RefusedQueues(HashSet<String>);

impl RefusedQueues {
    /// Fails the graph if a node would start in one of these queues.
    pub(super) fn apply(&self, change: &mut GraphChange) {
        if !self.0.is_empty() {
            change.refuse_queues(|queue| self.0.contains(queue));
        }
    }

    /// Adds those of `queues` that the workspace may not use. Fails if there are none: then the step was not refused for its queues.
    pub(super) async fn add(
        &mut self,
        session: Session<'_>,
        workspace: WorkspaceId,
        queues: &HashSet<String>,
    ) -> Result<()> {
        let found = queue_access::refused(session, workspace, queues).await?;
        let before = self.0.len();
        self.0.extend(found);
        if self.0.len() > before {
            return Ok(());
        }
        let text = "a queue of a graph was shared or deleted while its node started";
        Err(Error::new(
            session.context,
            ErrorKind::Contended(text.to_owned()),
        ))
    }
}
