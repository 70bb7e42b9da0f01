//! Direct access to Temporal: lists runs, and answers single workflow tasks as a worker would. Runs no workflow.

use crate::WAIT_TIMEOUT;
use leasehold_core::ExecutionId;
use leasehold_testkit::TestTemporal;
use serde_json::Value;
use temporalio_client::grpc::WorkflowService;
use temporalio_client::tonic::IntoRequest;
use temporalio_client::{Connection, ConnectionOptions, Url};
use temporalio_common::protos::temporal::api::command::v1::command::Attributes;
use temporalio_common::protos::temporal::api::command::v1::{
    CancelWorkflowExecutionCommandAttributes, Command, CompleteWorkflowExecutionCommandAttributes,
    ContinueAsNewWorkflowExecutionCommandAttributes, FailWorkflowExecutionCommandAttributes,
};
use temporalio_common::protos::temporal::api::common::v1::{WorkflowExecution, WorkflowType};
use temporalio_common::protos::temporal::api::enums::v1::CommandType;
use temporalio_common::protos::temporal::api::failure::v1::Failure;
use temporalio_common::protos::temporal::api::history::v1::history_event;
use temporalio_common::protos::temporal::api::taskqueue::v1::TaskQueue;
use temporalio_common::protos::temporal::api::workflowservice::v1::{
    DescribeWorkflowExecutionRequest, DescribeWorkflowExecutionResponse,
    ListWorkflowExecutionsRequest, PollWorkflowTaskQueueRequest, PollWorkflowTaskQueueResponse,
    RespondWorkflowTaskCompletedRequest,
};
use tokio::sync::OnceCell;

const NAMESPACE: &str = "default";

/// A scenario's view of a Temporal server.
pub(crate) struct Temporal {
    address: String,
    queue: TaskQueue,
    connection: OnceCell<Connection>,
}

/// A run of a workflow.
pub(crate) struct Run {
    pub(crate) workflow_id: String,
    pub(crate) run_id: String,
}

impl Temporal {
    pub(crate) fn new(address: String, queue: String) -> Self {
        Self {
            address,
            queue: TaskQueue {
                name: queue,
                ..TaskQueue::default()
            },
            connection: OnceCell::new(),
        }
    }

    async fn connection(&self) -> Connection {
        let connect = async || {
            let url = Url::parse(&format!("http://{}", self.address)).unwrap();
            Connection::connect(ConnectionOptions::new(url).build())
                .await
                .unwrap()
        };
        self.connection.get_or_init(connect).await.clone()
    }

    /// Lists all runs on the scenario's task queue; Temporal's list lags a little.
    pub(crate) async fn runs(&self) -> Vec<Run> {
        let request = ListWorkflowExecutionsRequest {
            namespace: NAMESPACE.to_owned(),
            page_size: 1000,
            query: format!("TaskQueue = '{}'", self.queue.name),
            ..ListWorkflowExecutionsRequest::default()
        };
        let mut connection = self.connection().await;
        let answer = connection.list_workflow_executions(request.into_request());
        let executions = answer.await.unwrap().into_inner().executions.into_iter();
        executions
            .map(|seen| {
                let run = seen.execution.unwrap();
                Run {
                    workflow_id: run.workflow_id,
                    run_id: run.run_id,
                }
            })
            .collect()
    }

    /// Describes the latest run of a workflow, without lag.
    async fn describe(&self, workflow_id: &str) -> DescribeWorkflowExecutionResponse {
        let request = DescribeWorkflowExecutionRequest {
            namespace: NAMESPACE.to_owned(),
            execution: Some(WorkflowExecution {
                workflow_id: workflow_id.to_owned(),
                run_id: String::new(),
            }),
        };
        let mut connection = self.connection().await;
        let answer = connection.describe_workflow_execution(request.into_request());
        answer.await.unwrap().into_inner()
    }

    /// Returns the latest run of a workflow.
    pub(crate) async fn latest_run(&self, workflow_id: &str) -> String {
        let info = self.describe(workflow_id).await.workflow_execution_info;
        info.unwrap().execution.unwrap().run_id
    }

    /// Whether the latest run of a workflow received a cancel request.
    pub(crate) async fn is_cancel_requested(&self, workflow_id: &str) -> bool {
        let info = self.describe(workflow_id).await.workflow_extended_info;
        info.unwrap().cancel_requested
    }

    /// Polls the next workflow task.
    async fn poll(&self) -> PollWorkflowTaskQueueResponse {
        let request = PollWorkflowTaskQueueRequest {
            namespace: NAMESPACE.to_owned(),
            task_queue: Some(self.queue.clone()),
            identity: "hand".to_owned(),
            ..PollWorkflowTaskQueueRequest::default()
        };
        let mut connection = self.connection().await;
        loop {
            let poll = connection.poll_workflow_task_queue(request.clone().into_request());
            let answer = tokio::time::timeout(WAIT_TIMEOUT, poll).await.unwrap();
            let task = answer.unwrap().into_inner();
            // A poll without a task ends after a minute.
            if !task.task_token.is_empty() {
                return task;
            }
        }
    }

    /// Polls the next workflow task and answers with one command. Returns the workflow id and its argument.
    async fn answer(&self, command_type: CommandType, attributes: Attributes) -> (String, Value) {
        let task = self.poll().await;
        let request = RespondWorkflowTaskCompletedRequest {
            namespace: NAMESPACE.to_owned(),
            identity: "hand".to_owned(),
            task_token: task.task_token.clone(),
            commands: vec![Command {
                command_type: command_type.into(),
                attributes: Some(attributes),
                ..Command::default()
            }],
            ..RespondWorkflowTaskCompletedRequest::default()
        };
        let mut connection = self.connection().await;
        let answer = connection.respond_workflow_task_completed(request.into_request());
        answer.await.unwrap();
        let argument = argument(&task);
        (task.workflow_execution.unwrap().workflow_id, argument)
    }

    /// Completes the next workflow.
    pub(crate) async fn complete_next(&self) -> (String, Value) {
        let attributes = CompleteWorkflowExecutionCommandAttributes::default();
        self.answer(
            CommandType::CompleteWorkflowExecution,
            Attributes::CompleteWorkflowExecutionCommandAttributes(attributes),
        )
        .await
    }

    /// Lets the next workflow accept its cancellation.
    pub(crate) async fn cancel_next(&self) {
        let attributes = CancelWorkflowExecutionCommandAttributes::default();
        self.answer(
            CommandType::CancelWorkflowExecution,
            Attributes::CancelWorkflowExecutionCommandAttributes(attributes),
        )
        .await;
    }

    /// Fails the next workflow.
    pub(crate) async fn fail_next(&self, message: &str) {
        let failure = Failure {
            message: message.to_owned(),
            ..Failure::default()
        };
        let attributes = FailWorkflowExecutionCommandAttributes {
            failure: Some(failure),
        };
        self.answer(
            CommandType::FailWorkflowExecution,
            Attributes::FailWorkflowExecutionCommandAttributes(attributes),
        )
        .await;
    }

    /// Continues the next workflow as a new run.
    pub(crate) async fn continue_next(&self) {
        let attributes = ContinueAsNewWorkflowExecutionCommandAttributes {
            workflow_type: Some(WorkflowType {
                name: "Order".to_owned(),
            }),
            task_queue: Some(self.queue.clone()),
            ..ContinueAsNewWorkflowExecutionCommandAttributes::default()
        };
        self.answer(
            CommandType::ContinueAsNewWorkflowExecution,
            Attributes::ContinueAsNewWorkflowExecutionCommandAttributes(attributes),
        )
        .await;
    }
}

/// Returns the argument a workflow was started with; null in a continued run.
fn argument(task: &PollWorkflowTaskQueueResponse) -> Value {
    let first = task.history.as_ref().unwrap().events[0].attributes.as_ref();
    let Some(history_event::Attributes::WorkflowExecutionStartedEventAttributes(started)) = first
    else {
        panic!("the first event is {first:?}");
    };
    match &started.input {
        Some(input) => serde_json::from_slice(&input.payloads[0].data).unwrap(),
        None => Value::Null,
    }
}

/// Runs Temporal's command line on the shared server, as an operator would.
pub(crate) fn operator(arguments: &[&str], execution: ExecutionId) {
    let id = format!("execution-{execution}");
    let named = [&["workflow"], arguments, &["--workflow-id", &id]].concat();
    TestTemporal::shared().cli(&named).unwrap();
}
