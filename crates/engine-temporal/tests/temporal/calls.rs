//! Raw calls to the server, to read its stored data. Asserts nothing.

use leasehold_testkit::TestTemporal;
use temporalio_client::grpc::WorkflowService;
use temporalio_client::tonic::IntoRequest;
use temporalio_client::{Connection, ConnectionOptions, Url};
use temporalio_common::protos::temporal::api::common::v1::WorkflowExecution;
use temporalio_common::protos::temporal::api::history::v1::HistoryEvent;
use temporalio_common::protos::temporal::api::workflow::v1::WorkflowExecutionInfo;
use temporalio_common::protos::temporal::api::workflowservice::v1::{
    DescribeWorkflowExecutionRequest, GetWorkflowExecutionHistoryRequest,
};

pub(crate) async fn connect() -> Connection {
    let url = format!("http://{}", TestTemporal::shared().address());
    let options = ConnectionOptions::new(Url::parse(&url).unwrap()).build();
    Connection::connect(options).await.unwrap()
}

fn latest(workflow_id: &str) -> Option<WorkflowExecution> {
    Some(WorkflowExecution {
        workflow_id: workflow_id.to_owned(),
        run_id: String::new(),
    })
}

/// Describes the latest run.
pub(crate) async fn describe(workflow_id: &str) -> WorkflowExecutionInfo {
    let request = DescribeWorkflowExecutionRequest {
        namespace: "default".to_owned(),
        execution: latest(workflow_id),
    };
    let answer = connect()
        .await
        .describe_workflow_execution(request.into_request())
        .await;
    answer
        .unwrap()
        .into_inner()
        .workflow_execution_info
        .unwrap()
}

/// Returns the history of the latest run.
pub(crate) async fn history(workflow_id: &str) -> Vec<HistoryEvent> {
    let request = GetWorkflowExecutionHistoryRequest {
        namespace: "default".to_owned(),
        execution: latest(workflow_id),
        ..GetWorkflowExecutionHistoryRequest::default()
    };
    let answer = connect()
        .await
        .get_workflow_execution_history(request.into_request())
        .await;
    answer.unwrap().into_inner().history.unwrap().events
}
