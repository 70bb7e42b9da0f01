//! The label sets of metrics. Their values are known, or bounded by `bounded_series` and `busiest_workspaces`.

use prometheus_client::encoding::EncodeLabelSet;
use std::sync::Arc;

/// An answered HTTP request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct RouteStatus {
    pub(crate) method: &'static str,
    pub(crate) route: Arc<str>,
    pub(crate) status: u16,
}

/// An HTTP request by method and route.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Route {
    /// The method, one of the known ones.
    pub method: &'static str,
    /// The route it matched.
    pub route: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Reason {
    pub(crate) reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Status {
    pub(crate) status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Outcome {
    pub(crate) outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Kind {
    pub(crate) kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct TaskName {
    pub(crate) task: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct LockName {
    pub(crate) lock: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct EngineCall {
    pub(crate) engine: &'static str,
    pub(crate) call: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct EngineOutcome {
    pub(crate) engine: &'static str,
    pub(crate) call: &'static str,
    pub(crate) outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct StoreCall {
    pub(crate) call: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct StoreOutcome {
    pub(crate) call: &'static str,
    pub(crate) outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct WorkspaceName {
    pub(crate) workspace: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct WorkspaceStatus {
    pub(crate) workspace: Arc<str>,
    pub(crate) status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct QueueName {
    pub(crate) queue: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct QueueStatus {
    pub(crate) queue: Arc<str>,
    pub(crate) status: &'static str,
}
