//! Owners and sharing of queues in the model.

use super::Model;
use super::job::Jobs;
use super::state::State;
use leasehold_core::graph::{GraphEvent, GraphState, Machine, PreparedStep};
use leasehold_core::limits::QUEUES_OWNED_MAX;
use leasehold_core::queue_access::refusal_text;
use leasehold_core::{JsonText, Timestamp, WorkspaceId};
use leasehold_store::Actor;
use leasehold_store::audit::AuditRecord;
use leasehold_store::definition::{
    NewVersion, Publisher, QueueGrants, QueueRefusal, VersionPublished,
};
use leasehold_store::queue::{QueueOwnership, QueueShared, SharedWith};
use std::collections::BTreeSet;

/// The owner of a queue and whom it is shared with.
#[derive(Clone, Debug, Default)]
pub(super) struct Sharing {
    pub(super) owner: Option<WorkspaceId>,
    all: bool,
    workspaces: BTreeSet<WorkspaceId>,
}

impl Jobs {
    /// Whether graphs of the workspace may use the queue.
    pub(super) fn permits(&self, queue: &str, workspace: WorkspaceId) -> bool {
        let sharing = self.sharing.get(queue);
        sharing.is_some_and(|sharing| {
            sharing.all
                || sharing.owner == Some(workspace)
                || sharing.workspaces.contains(&workspace)
        })
    }

    /// Creates and shares the queues of a version; none, and nothing is changed, if the version does not fit.
    fn prepare_queues(
        &mut self,
        new: &NewVersion,
        has_room: bool,
        now: Timestamp,
    ) -> Result<Option<QueueGrants>, QueueRefusal> {
        let owner_of = |queue: &str| self.sharing.get(queue).and_then(|sharing| sharing.owner);
        let names = new.body.task_queues();
        let own = new.publisher == Publisher::Workspace;
        for name in &names {
            let is_new = !self.queues.contains_key(*name);
            let can_share = !own && owner_of(name).is_none();
            if !is_new && !can_share && !self.permits(name, new.workspace) {
                return Err(QueueRefusal::NotPermitted((*name).to_owned()));
            }
        }
        let owners = self.sharing.values().map(|sharing| sharing.owner);
        let owned = owners.filter(|owner| *owner == Some(new.workspace)).count();
        let is_new = |name: &&&str| !self.queues.contains_key(**name);
        let created: Vec<&str> = names.iter().filter(is_new).copied().collect();
        if own && owned + created.len() > QUEUES_OWNED_MAX {
            let first = created[QUEUES_OWNED_MAX.saturating_sub(owned)];
            return Err(QueueRefusal::TooMany(first.to_owned()));
        }
        if !has_room {
            return Ok(None);
        }
        for name in &created {
            let name = *name;
            self.queue(name, now);
            let sharing = self.sharing.entry(name.to_owned()).or_default();
            sharing.owner = own.then_some(new.workspace);
        }
        let mut shared = Vec::new();
        for name in names {
            if !self.permits(name, new.workspace) {
                let sharing = self.sharing.entry(name.to_owned()).or_default();
                sharing.workspaces.insert(new.workspace);
                shared.push(name.to_owned());
            }
        }
        let created = created.into_iter().map(str::to_owned).collect();
        Ok(Some(QueueGrants::new(created, shared)))
    }

    /// Makes the queues of a deleted workspace the installation's.
    pub(super) fn release_queues(&mut self, workspace: WorkspaceId) {
        for sharing in self.sharing.values_mut() {
            if sharing.owner == Some(workspace) {
                sharing.owner = None;
                sharing.workspaces.insert(workspace);
            }
        }
    }

    /// Fails the first node to start in a queue that the workspace may not use.
    pub(super) fn refuse(
        &self,
        machine: &Machine,
        state: &mut GraphState,
        workspace: WorkspaceId,
        prepared: PreparedStep<JsonText>,
    ) -> PreparedStep<JsonText> {
        let refused = prepared.begin.iter().find_map(|(at, _)| {
            let queue = machine.node(*at).kind.task_queue()?;
            let is_refused = !self.permits(queue, workspace);
            is_refused.then(|| (*at, refusal_text(queue)))
        });
        let Some((at, error)) = refused else {
            return prepared;
        };
        let step = machine.apply(state, GraphEvent::Failed(at));
        let step = step.expect("a node that starts can fail");
        let begun = |node: &usize| prepared.begin.iter().any(|(at, _)| at == node);
        PreparedStep {
            begin: Vec::new(),
            abandon: step.abandon.into_iter().filter(|at| !begun(at)).collect(),
            failed: Some((at, error)),
            end: step.end,
        }
    }

    fn ownership(&self, state: &State, queue: &str) -> Option<QueueOwnership> {
        self.queues.get(queue)?;
        let sharing = self.sharing.get(queue).cloned().unwrap_or_default();
        let existing = |id: &WorkspaceId| state.existing().find(|workspace| workspace.id == *id);
        let name = |id: &WorkspaceId| existing(id).map(|workspace| workspace.name.clone());
        let mut names: Vec<String> = sharing.workspaces.iter().filter_map(name).collect();
        names.sort_unstable();
        Some(QueueOwnership {
            queue: queue.to_owned(),
            owner: sharing.owner.as_ref().and_then(name),
            shared_with: match sharing.all {
                true => SharedWith::All,
                false => SharedWith::Workspaces(names),
            },
        })
    }
}

impl Model {
    pub(super) fn publish(&self, new: &NewVersion, by: &Actor) -> VersionPublished {
        let mut state = self.state();
        let definition = state.definition(new.workspace, new.definition);
        if definition.is_none() || !state.exists(new.workspace) {
            return VersionPublished::DefinitionNotFound;
        }
        let has_room = state.has_room(new.workspace, new.bytes());
        let grants = match self.jobs(|jobs, now| jobs.prepare_queues(new, has_room, now)) {
            Ok(Some(grants)) => grants,
            Ok(None) => return VersionPublished::QuotaExceeded,
            Err(refusal) => return VersionPublished::QueueRefused(refusal),
        };
        let now = self.now();
        let published = state.publish(new, now);
        if let Some(version) = &published {
            let record = AuditRecord::version_publish(version, &grants);
            state.audit(by, record, now);
        }
        VersionPublished::of(published)
    }

    pub(super) fn queue_ownership_of(&self, names: &[String]) -> Vec<QueueOwnership> {
        let state = self.state();
        let names: BTreeSet<&String> = names.iter().collect();
        self.jobs(|jobs, _| {
            let found = names.iter().map(|name| jobs.ownership(&state, name));
            found.flatten().collect()
        })
    }

    pub(super) fn share_queue(&self, name: &str, with: &SharedWith, by: &Actor) -> QueueShared {
        let mut state = self.state();
        let mut workspaces = BTreeSet::new();
        if let SharedWith::Workspaces(names) = with {
            for name in names {
                match state.workspace_named(name) {
                    Some(workspace) => workspaces.insert(workspace.id),
                    None => return QueueShared::WorkspaceNotFound(name.clone()),
                };
            }
        }
        let shared = self.jobs(|jobs, now| {
            jobs.queue(name, now);
            let sharing = jobs.sharing.entry(name.to_owned()).or_default();
            let deleted = |id: &WorkspaceId| !state.exists(*id);
            let kept = sharing.workspaces.iter().copied().filter(deleted);
            workspaces.extend(kept);
            sharing.workspaces = workspaces;
            sharing.all = *with == SharedWith::All;
            let shared = jobs.ownership(&state, name);
            shared.expect("the queue exists")
        });
        state.audit(by, AuditRecord::queue_share(&shared), self.now());
        QueueShared::Shared(shared)
    }
}
