//! Tests against a stub gRPC server for responses that a real server does not give on demand: every status code, missing details, request headers.

use crate::proto::{
    DescribeWorkflowExecutionResponse, WorkflowExecutionInfo, WorkflowExecutionStatus,
};
use crate::{TemporalEngine, TemporalOptions};
use http_body_util::StreamBody;
use http_body_util::combinators::BoxBody;
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use leasehold_core::{
    DefinitionId, ExecutionEnd, ExecutionId, JsonText, RequestId, Timestamp, Version, VersionBody,
    VersionId, WorkspaceId,
};
use leasehold_engine::{Description, Engine, Error, Start, StartOutcome};
use prost::Message;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use tonic::{Code, Status};
use uuid::Uuid;

type Answer = Result<Vec<u8>, Status>;
type Body = BoxBody<Bytes, Infallible>;

/// A call that the stub received.
struct ReceivedCall {
    name: String,
    headers: HeaderMap,
}

/// Creates an engine whose server answers with `answer`; connecting always succeeds.
fn engine(answer: impl Fn(&ReceivedCall) -> Answer + Send + Sync + 'static) -> TemporalEngine {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    tokio::spawn(serve(listener, Arc::new(answer)));
    let options = TemporalOptions {
        address: format!("http://{address}"),
        api_key: Some("secret".to_owned().into()),
        ..TemporalOptions::default()
    };
    TemporalEngine::new(options).unwrap()
}

async fn serve<A>(listener: tokio::net::TcpListener, answer: Arc<A>)
where
    A: Fn(&ReceivedCall) -> Answer + Send + Sync + 'static,
{
    while let Ok((stream, _)) = listener.accept().await {
        let answer = answer.clone();
        let service = hyper::service::service_fn(move |request| {
            let response = respond(&request, &*answer);
            std::future::ready(Ok::<_, Infallible>(response))
        });
        let http = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
    }
}

fn respond(
    request: &Request<Incoming>,
    answer: &dyn Fn(&ReceivedCall) -> Answer,
) -> Response<Body> {
    let called = ReceivedCall {
        name: request.uri().path().rsplit('/').next().unwrap().to_owned(),
        headers: request.headers().clone(),
    };
    let answer = match called.name.as_str() {
        "GetSystemInfo" => Ok(Vec::new()),
        _ => answer(&called),
    };
    match answer {
        Ok(message) => Response::builder()
            .header(CONTENT_TYPE, "application/grpc")
            .body(succeeded(&message))
            .unwrap(),
        Err(status) => status.into_http(),
    }
}

/// Encodes one uncompressed message and the trailing status.
fn succeeded(message: &[u8]) -> Body {
    let mut framed = vec![0];
    framed.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
    framed.extend(message);
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", "0".parse().unwrap());
    let frames = [Frame::data(Bytes::from(framed)), Frame::trailers(trailers)];
    BoxBody::new(StreamBody::new(futures::stream::iter(frames.map(Ok))))
}

fn always_failing(code: Code) -> TemporalEngine {
    engine(move |_| Err(Status::new(code, "injected")))
}

fn start() -> Start {
    Start {
        execution: ExecutionId(Uuid::nil()),
        request: RequestId(Uuid::nil()),
        workspace: WorkspaceId(Uuid::nil()),
        definition: DefinitionId(Uuid::nil()),
        version: Arc::new(Version {
            id: VersionId(Uuid::nil()),
            workspace: WorkspaceId(Uuid::nil()),
            definition: DefinitionId(Uuid::nil()),
            number: 1,
            body: VersionBody::Binding {
                workflow_type: "Order".to_owned(),
                task_queue: "orders".to_owned(),
            },
            params_schema: None,
            execution_timeout: None,
            created_at: Timestamp::UNIX_EPOCH,
        }),
        priority: 0,
        params: JsonText::default(),
        crashed: false,
        trace: None,
        trace_context: None,
    }
}

#[tokio::test]
async fn start_outcome_of_every_code() {
    let rejected = |error| StartOutcome::Refused { error };
    let unknown = |error| StartOutcome::Unknown { error };
    let reached = |error| StartOutcome::Unavailable {
        error,
        reached: true,
    };
    let not_reached = |error| StartOutcome::Unavailable {
        error,
        reached: false,
    };
    let table: [(Code, &dyn Fn(String) -> StartOutcome); 15] = [
        (Code::Cancelled, &unknown),
        (Code::Unknown, &unknown),
        (Code::InvalidArgument, &rejected),
        (Code::DeadlineExceeded, &unknown),
        (Code::NotFound, &not_reached),
        (Code::PermissionDenied, &not_reached),
        (Code::ResourceExhausted, &reached),
        (Code::FailedPrecondition, &reached),
        (Code::Aborted, &unknown),
        (Code::OutOfRange, &unknown),
        (Code::Unimplemented, &not_reached),
        (Code::Internal, &unknown),
        (Code::Unavailable, &reached),
        (Code::DataLoss, &unknown),
        (Code::Unauthenticated, &not_reached),
    ];
    for (code, outcome) in table {
        assert_eq!(
            always_failing(code).start(&start()).await,
            outcome(format!("{code:?}: injected"))
        );
    }
    let ok = engine(|_| Ok(Vec::new()));
    assert_eq!(ok.start(&start()).await, StartOutcome::Started);
    let exists = always_failing(Code::AlreadyExists).start(&start()).await;
    assert!(
        matches!(&exists, StartOutcome::Unknown { error } if error.contains("the workflow id is in use")),
        "{exists:?}"
    );
}

#[tokio::test]
async fn error_of_every_code_for_other_calls() {
    let failed = [
        Code::InvalidArgument,
        Code::AlreadyExists,
        Code::OutOfRange,
        Code::Internal,
        Code::DataLoss,
    ];
    for code in (1..=16).map(Code::from_i32) {
        let engine = always_failing(code);
        let execution = start().execution;
        let mut errors = vec![
            engine.describe(execution).await.unwrap_err(),
            engine.health().await.unwrap_err(),
            engine.pollers(&start().version.body).await.unwrap_err(),
            engine
                .ended_since(Timestamp::UNIX_EPOCH, None)
                .await
                .unwrap_err(),
        ];
        if code != Code::AlreadyExists {
            errors.push(engine.cancel(execution, "").await.unwrap_err());
            errors.push(engine.terminate(execution, "").await.unwrap_err());
        }
        for error in errors {
            assert_eq!(
                matches!(error, Error::Failed(_)),
                failed.contains(&code),
                "{code:?}: {error}"
            );
        }
    }
}

#[tokio::test]
async fn message_too_large_for_the_server_is_rejected() {
    for message in [
        "grpc: received message larger than max (5000000 vs. 4194304)",
        "grpc: received message after decompression larger than max 4194304",
    ] {
        let engine = engine(move |_| Err(Status::resource_exhausted(message)));
        let outcome = engine.start(&start()).await;
        assert!(
            matches!(outcome, StartOutcome::Refused { .. }),
            "{outcome:?}"
        );
    }
}

#[tokio::test]
async fn end_is_reported_without_its_last_event() {
    let engine = engine(|called| match called.name.as_str() {
        "DescribeWorkflowExecution" => Ok(described(WorkflowExecutionStatus::Failed as i32)),
        _ => Err(Status::unavailable("injected")),
    });
    assert_eq!(
        engine.describe(start().execution).await,
        Ok(Description::Ended {
            end: ExecutionEnd::Failed,
            error: Some("the workflow failed".to_owned()),
            at: None,
        })
    );
}

#[tokio::test]
async fn unknown_status_is_an_error() {
    for status in [0, 99] {
        let engine = engine(move |_| Ok(described(status)));
        let error = engine.describe(start().execution).await.unwrap_err();
        assert!(matches!(error, Error::Failed(_)), "{error}");
    }
}

fn described(status: i32) -> Vec<u8> {
    let info = WorkflowExecutionInfo {
        status,
        ..WorkflowExecutionInfo::default()
    };
    DescribeWorkflowExecutionResponse {
        workflow_execution_info: Some(info),
        ..DescribeWorkflowExecutionResponse::default()
    }
    .encode_to_vec()
}

#[tokio::test]
async fn every_call_is_sent_once_with_key_and_deadline() {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let seen = calls.clone();
    let engine = engine(move |called| {
        let header = |name| called.headers[name].to_str().unwrap().to_owned();
        let call = (called.name.clone(), header("authorization"));
        seen.lock().unwrap().push(call);
        assert!(!header("grpc-timeout").is_empty());
        assert_eq!(header("temporal-namespace"), "default");
        Err(Status::unavailable("injected"))
    });
    engine.start(&start()).await;
    let _ = engine.describe(start().execution).await;
    let _ = engine.cancel(start().execution, "").await;
    let _ = engine.terminate(start().execution, "").await;
    let _ = engine.health().await;
    let calls = calls.lock().unwrap();
    let names: Vec<&str> = calls.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "StartWorkflowExecution",
            "DescribeWorkflowExecution",
            "RequestCancelWorkflowExecution",
            "TerminateWorkflowExecution",
            "DescribeNamespace",
        ]
    );
    assert!(calls.iter().all(|(_, key)| key == "Bearer secret"));
}
