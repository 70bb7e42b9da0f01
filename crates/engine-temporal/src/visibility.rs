//! Lists ended workflows, counts pollers, identifies and checks the namespace: hints and health. No slot is freed on this evidence.

use crate::connection::RpcError;
use crate::grpc_codes::engine_error;
use crate::proto::{
    DescribeNamespaceRequest, DescribeTaskQueueRequest, GetClusterInfoRequest,
    ListWorkflowExecutionsRequest, NamespaceInfo, NamespaceState, TaskQueue, TaskQueueType,
    WorkflowExecutionInfo,
};
use crate::{TemporalEngine, WORKFLOW_ID_PREFIX};
use leasehold_core::{EngineIdentity, Timestamp, VersionBody};
use leasehold_engine::{EndedPage, Error, Result};
use std::time::Duration;
use tonic::Code;

/// Temporal's default maximum page size.
const PAGE_SIZE: i32 = 1000;

/// Timeout of a health check.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(3);

impl TemporalEngine {
    pub(crate) async fn list_ended(
        &self,
        since: Timestamp,
        page: Option<Vec<u8>>,
    ) -> Result<EndedPage> {
        let request = ListWorkflowExecutionsRequest {
            namespace: self.options.namespace.clone(),
            page_size: PAGE_SIZE,
            next_page_token: page.unwrap_or_default(),
            query: format!(
                "CloseTime >= '{since}' AND WorkflowId STARTS_WITH '{WORKFLOW_ID_PREFIX}' \
                 AND ExecutionStatus != 'ContinuedAsNew'"
            ),
        };
        let sent = self.connection.call(self.options.call_timeout, request);
        let answer = sent.await.map_err(|rpc_error| engine_error(&rpc_error))?;
        Ok(EndedPage {
            executions: answer
                .executions
                .iter()
                .filter_map(|seen| crate::execution_id(&seen.execution.as_ref()?.workflow_id))
                .collect(),
            newest: answer.executions.iter().filter_map(close_time).max(),
            next: Some(answer.next_page_token).filter(|token| !token.is_empty()),
        })
    }

    /// Counts the workers that have polled the task queue within the last minutes.
    pub(crate) async fn count_pollers(&self, body: &VersionBody) -> Result<usize> {
        let (_, task_queue) = self.workflow_type_and_queue(body);
        let request = DescribeTaskQueueRequest {
            namespace: self.options.namespace.clone(),
            task_queue: Some(TaskQueue {
                name: task_queue.to_owned(),
            }),
            task_queue_type: TaskQueueType::Workflow.into(),
        };
        let sent = self.connection.call(self.options.call_timeout, request);
        let answer = sent.await.map_err(|rpc_error| engine_error(&rpc_error))?;
        Ok(answer.pollers.len())
    }

    async fn describe_namespace(&self) -> Result<Option<NamespaceInfo>> {
        let request = DescribeNamespaceRequest {
            namespace: self.options.namespace.clone(),
        };
        let sent = self
            .connection
            .call(self.options.call_timeout.min(HEALTH_TIMEOUT), request);
        let answer = sent.await.map_err(|rpc_error| engine_error(&rpc_error))?;
        Ok(answer.namespace_info)
    }

    /// Returns the ids of the namespace and the cluster.
    pub(crate) async fn namespace_identity(&self) -> Result<EngineIdentity> {
        let namespace = self.describe_namespace().await?.unwrap_or_default();
        if namespace.id.is_empty() {
            let namespace = &self.options.namespace;
            let error = format!("the description of namespace {namespace} has no id");
            return Err(Error::Failed(error));
        }
        let timeout = self.options.call_timeout.min(HEALTH_TIMEOUT);
        let sent = self.connection.call(timeout, GetClusterInfoRequest {});
        let cluster_id = match sent.await {
            Ok(cluster) => cluster.cluster_id,
            // A key for one namespace may not read about the cluster; the id of the namespace decides.
            Err(RpcError::Status(status))
                if matches!(status.code(), Code::PermissionDenied | Code::Unimplemented) =>
            {
                String::new()
            }
            Err(rpc_error) => return Err(engine_error(&rpc_error)),
        };
        Ok(EngineIdentity {
            kind: "temporal".to_owned(),
            namespace: self.options.namespace.clone(),
            namespace_id: namespace.id,
            cluster_id,
        })
    }

    /// Checks the connection, the credentials, the namespace and the server's database with one small read.
    pub(crate) async fn check_namespace(&self) -> Result<()> {
        let namespace = self.describe_namespace().await?;
        match namespace.map(|namespace| namespace.state()) {
            Some(NamespaceState::Registered) => Ok(()),
            state => Err(Error::Unavailable(format!(
                "namespace {} does not accept starts: state {state:?}",
                self.options.namespace
            ))),
        }
    }
}

pub(crate) fn close_time(seen: &WorkflowExecutionInfo) -> Option<Timestamp> {
    let time = seen.close_time.as_ref()?;
    Timestamp::new(time.seconds, time.nanos).ok()
}
