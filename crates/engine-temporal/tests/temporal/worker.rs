//! A worker stub that polls one workflow task and completes it with a given command. Runs no workflow.

use crate::calls::connect;
use crate::{WAIT_TIMEOUT, task_queue};
use leasehold_engine::Start;
use temporalio_client::Connection;
use temporalio_client::grpc::WorkflowService;
use temporalio_client::tonic::IntoRequest;
use temporalio_common::protos::temporal::api::command::v1::command::Attributes;
use temporalio_common::protos::temporal::api::command::v1::{
    CancelWorkflowExecutionCommandAttributes, Command, CompleteWorkflowExecutionCommandAttributes,
    ContinueAsNewWorkflowExecutionCommandAttributes, FailWorkflowExecutionCommandAttributes,
};
use temporalio_common::protos::temporal::api::common::v1::{RetryPolicy, WorkflowType};
use temporalio_common::protos::temporal::api::enums::v1::CommandType;
use temporalio_common::protos::temporal::api::failure::v1::Failure;
use temporalio_common::protos::temporal::api::taskqueue::v1::TaskQueue;
use temporalio_common::protos::temporal::api::workflowservice::v1::{
    PollWorkflowTaskQueueRequest, PollWorkflowTaskQueueResponse,
    RespondWorkflowTaskCompletedRequest,
};

pub(crate) struct Worker {
    connection: Connection,
    queue: TaskQueue,
}

impl Worker {
    pub(crate) async fn of(start: &Start) -> Self {
        Self {
            connection: connect().await,
            queue: TaskQueue {
                name: task_queue(start).to_owned(),
                ..TaskQueue::default()
            },
        }
    }

    /// Polls the next workflow task.
    pub(crate) async fn poll(&mut self) -> PollWorkflowTaskQueueResponse {
        let request = PollWorkflowTaskQueueRequest {
            namespace: "default".to_owned(),
            task_queue: Some(self.queue.clone()),
            identity: "hand".to_owned(),
            ..PollWorkflowTaskQueueRequest::default()
        };
        loop {
            let poll = self
                .connection
                .poll_workflow_task_queue(request.clone().into_request());
            let answer = tokio::time::timeout(WAIT_TIMEOUT, poll).await.unwrap();
            let task = answer.unwrap().into_inner();
            // A poll without a task ends after a minute.
            if !task.task_token.is_empty() {
                return task;
            }
        }
    }

    /// Polls the next workflow task and completes it with one command, or none.
    pub(crate) async fn answer(&mut self, command: Option<Command>) {
        let task = self.poll().await;
        let request = RespondWorkflowTaskCompletedRequest {
            namespace: "default".to_owned(),
            identity: "hand".to_owned(),
            task_token: task.task_token,
            commands: command.into_iter().collect(),
            ..RespondWorkflowTaskCompletedRequest::default()
        };
        self.connection
            .respond_workflow_task_completed(request.into_request())
            .await
            .unwrap();
    }

    pub(crate) async fn complete(&mut self) {
        let attributes = CompleteWorkflowExecutionCommandAttributes::default();
        self.answer(Some(command(
            CommandType::CompleteWorkflowExecution,
            Attributes::CompleteWorkflowExecutionCommandAttributes(attributes),
        )))
        .await;
    }

    pub(crate) async fn cancel(&mut self) {
        let attributes = CancelWorkflowExecutionCommandAttributes::default();
        self.answer(Some(command(
            CommandType::CancelWorkflowExecution,
            Attributes::CancelWorkflowExecutionCommandAttributes(attributes),
        )))
        .await;
    }

    pub(crate) async fn fail(&mut self, failure: Failure) {
        let attributes = FailWorkflowExecutionCommandAttributes {
            failure: Some(failure),
        };
        self.answer(Some(command(
            CommandType::FailWorkflowExecution,
            Attributes::FailWorkflowExecutionCommandAttributes(attributes),
        )))
        .await;
    }

    /// Continues as a new run, with up to `attempts` attempts.
    pub(crate) async fn continue_as_new(&mut self, attempts: i32) {
        let attributes = ContinueAsNewWorkflowExecutionCommandAttributes {
            workflow_type: Some(WorkflowType {
                name: "Order".to_owned(),
            }),
            task_queue: Some(self.queue.clone()),
            retry_policy: (attempts > 0).then(|| RetryPolicy {
                maximum_attempts: attempts,
                initial_interval: std::time::Duration::from_millis(1).try_into().ok(),
                backoff_coefficient: 1.0,
                ..RetryPolicy::default()
            }),
            ..ContinueAsNewWorkflowExecutionCommandAttributes::default()
        };
        self.answer(Some(command(
            CommandType::ContinueAsNewWorkflowExecution,
            Attributes::ContinueAsNewWorkflowExecutionCommandAttributes(attributes),
        )))
        .await;
    }
}

fn command(command_type: CommandType, attributes: Attributes) -> Command {
    Command {
        command_type: command_type.into(),
        attributes: Some(attributes),
        ..Command::default()
    }
}

/// A failure with its causes, the outermost first.
pub(crate) fn failure(messages: &[&str]) -> Failure {
    let mut failure = Failure::default();
    for message in messages.iter().rev() {
        let inner = std::mem::take(&mut failure);
        failure.message = (*message).to_owned();
        failure.cause = (!inner.message.is_empty()).then(|| Box::new(inner));
    }
    failure
}
