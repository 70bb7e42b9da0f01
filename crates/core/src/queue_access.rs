//! Which queues the graphs of a workspace may use, and what publishing a graph does to the queues that it names. Pure.

use crate::WorkspaceId;
use crate::limits::QUEUES_OWNED_MAX;
use crate::queue::RESERVED;

/// Who publishes a version. It decides whose the new queues of a graph are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Publisher {
    /// The workspace itself, with its own key.
    Workspace,
    /// An administrator, for the workspace.
    Administrator,
}

/// The access of one workspace to one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueAccess {
    /// No queue has this name.
    Unknown,
    /// The workspace owns it.
    Owned,
    /// It is shared with the workspace.
    Shared,
    /// It belongs to the installation and is not shared with the workspace.
    Installation,
    /// It belongs to another workspace and is not shared with this one.
    Foreign,
}

/// What publishing a graph does to one of its queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PublishStep {
    /// Nothing: the workspace may use it.
    Use,
    /// Creates it.
    Create,
    /// Shares it with the workspace.
    Share,
    /// The graph is refused.
    Refuse,
}

impl QueueAccess {
    /// Returns the access of `workspace` to an existing queue.
    pub fn of(workspace: WorkspaceId, owner: Option<WorkspaceId>, is_shared: bool) -> Self {
        match owner {
            Some(owner) if owner == workspace => Self::Owned,
            Some(_) | None if is_shared => Self::Shared,
            Some(_) => Self::Foreign,
            None => Self::Installation,
        }
    }

    /// Whether graphs of the workspace may enqueue jobs in the queue.
    pub const fn is_permitted(self) -> bool {
        match self {
            Self::Owned | Self::Shared => true,
            Self::Unknown | Self::Installation | Self::Foreign => false,
        }
    }

    const fn publish_step(self, publisher: Publisher) -> PublishStep {
        match (self, publisher) {
            (Self::Owned | Self::Shared, Publisher::Workspace | Publisher::Administrator) => {
                PublishStep::Use
            }
            (Self::Unknown, Publisher::Workspace | Publisher::Administrator) => PublishStep::Create,
            (Self::Installation, Publisher::Administrator) => PublishStep::Share,
            (Self::Installation, Publisher::Workspace)
            | (Self::Foreign, Publisher::Workspace | Publisher::Administrator) => {
                PublishStep::Refuse
            }
        }
    }
}

/// The queues that publishing a graph creates and shares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueuePlan<'a> {
    /// Queues to create: for the workspace if it publishes itself, otherwise for the installation. Those are shared in a second plan.
    pub create: Vec<&'a str>,
    /// Queues of the installation to share with the workspace.
    pub share: Vec<&'a str>,
}

/// What publishing a graph did to the queues that it names. The audit log records it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueGrants {
    /// Queues that it created: for the workspace, or for the installation and shared with the workspace if an administrator published.
    pub created: Vec<String>,
    /// Queues of the installation that existed and that it shared with the workspace.
    pub shared: Vec<String>,
}

impl QueueGrants {
    /// Sorts the names. Of the shared queues only those remain that were not created with them.
    pub fn new(mut created: Vec<String>, shared: impl IntoIterator<Item = String>) -> Self {
        created.sort_unstable();
        let existed = |queue: &String| created.binary_search(queue).is_err();
        let mut shared: Vec<String> = shared.into_iter().filter(existed).collect();
        shared.sort_unstable();
        Self { created, shared }
    }
}

/// Why a graph is refused because of a queue that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueRefusal {
    /// The workspace may not use this queue.
    NotPermitted(String),
    /// This queue would be one more than a workspace may own.
    TooMany(String),
}

impl QueueRefusal {
    /// Returns the queue.
    pub fn queue(&self) -> &str {
        match self {
            Self::NotPermitted(queue) | Self::TooMany(queue) => queue,
        }
    }
}

/// Decides what publishing a graph with these queues does. `owned` is the number of queues that the workspace owns already.
pub fn plan_publish<'a>(
    publisher: Publisher,
    queues: &[&'a str],
    access: impl Fn(&str) -> QueueAccess,
    owned: usize,
) -> Result<QueuePlan<'a>, QueueRefusal> {
    let mut plan = QueuePlan::default();
    for &queue in queues {
        match access(queue).publish_step(publisher) {
            PublishStep::Use => {}
            PublishStep::Create => plan.create.push(queue),
            PublishStep::Share => plan.share.push(queue),
            PublishStep::Refuse => return Err(QueueRefusal::NotPermitted(queue.to_owned())),
        }
    }
    let room = match publisher {
        Publisher::Workspace => QUEUES_OWNED_MAX.saturating_sub(owned),
        Publisher::Administrator => usize::MAX,
    };
    match plan.create.get(room) {
        Some(queue) => Err(QueueRefusal::TooMany((*queue).to_owned())),
        None => Ok(plan),
    }
}

/// Whether a queue is Leasehold's own, which the nodes of every workspace use.
pub fn is_internal(queue: &str) -> bool {
    queue.starts_with(RESERVED)
}

/// The error of a node that cannot start because its workspace may not use the queue.
pub fn refusal_text(queue: &str) -> String {
    format!("this workspace may not use queue `{queue}`; ask an administrator to share it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    const ALL: [QueueAccess; 5] = [
        QueueAccess::Unknown,
        QueueAccess::Owned,
        QueueAccess::Shared,
        QueueAccess::Installation,
        QueueAccess::Foreign,
    ];

    #[test]
    fn access_follows_from_owner_and_sharing() {
        let (own, other) = (Uuid::from_u128(1).into(), Uuid::from_u128(2).into());
        let table = [
            (Some(own), false, QueueAccess::Owned),
            (Some(own), true, QueueAccess::Owned),
            (Some(other), false, QueueAccess::Foreign),
            (Some(other), true, QueueAccess::Shared),
            (None, false, QueueAccess::Installation),
            (None, true, QueueAccess::Shared),
        ];
        for (owner, is_shared, access) in table {
            assert_eq!(QueueAccess::of(own, owner, is_shared), access);
        }
        assert_eq!(
            ALL.map(QueueAccess::is_permitted),
            [false, true, true, false, false]
        );
    }

    #[test]
    fn each_access_and_publisher_has_its_step() {
        use PublishStep::{Create, Refuse, Share, Use};
        let steps = |publisher| ALL.map(|access| access.publish_step(publisher));
        assert_eq!(
            steps(Publisher::Workspace),
            [Create, Use, Use, Refuse, Refuse]
        );
        assert_eq!(
            steps(Publisher::Administrator),
            [Create, Use, Use, Share, Refuse]
        );
    }

    #[test]
    fn workspace_owns_at_most_the_limit_and_administrators_create_more() {
        let names: Vec<String> = (0..QUEUES_OWNED_MAX + 1).map(|n| n.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let unknown = |_: &str| QueueAccess::Unknown;
        let plan = |publisher, count: usize, owned| {
            let plan = plan_publish(publisher, &names[..count], unknown, owned);
            plan.map(|plan| plan.create.len())
        };
        let too_many = |name: &str| Err(QueueRefusal::TooMany(name.to_owned()));
        let max = QUEUES_OWNED_MAX;
        assert_eq!(plan(Publisher::Workspace, max, 0), Ok(max));
        assert_eq!(plan(Publisher::Workspace, max + 1, 0), too_many(names[max]));
        assert_eq!(plan(Publisher::Workspace, 1, max - 1), Ok(1));
        assert_eq!(plan(Publisher::Workspace, 2, max - 1), too_many("1"));
        assert_eq!(plan(Publisher::Workspace, 1, max + 5), too_many("0"));
        assert_eq!(plan(Publisher::Administrator, max + 1, max), Ok(max + 1));
    }

    #[test]
    fn grants_name_a_created_queue_once() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let grants = QueueGrants::new(names(&["b", "a"]), names(&["d", "b", "c"]));
        let expected = QueueGrants {
            created: names(&["a", "b"]),
            shared: names(&["c", "d"]),
        };
        assert_eq!(grants, expected);
    }

    #[test]
    fn queue_that_is_not_permitted_is_named_before_the_limit() {
        let access = |queue: &str| match queue {
            "foreign" => QueueAccess::Foreign,
            _ => QueueAccess::Unknown,
        };
        let plan = plan_publish(
            Publisher::Workspace,
            &["a", "foreign"],
            access,
            QUEUES_OWNED_MAX,
        );
        let refused = QueueRefusal::NotPermitted("foreign".to_owned());
        assert_eq!(plan, Err(refused));
    }
}
