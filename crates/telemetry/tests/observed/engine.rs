//! Calls to an engine are counted by call and outcome. The engine here is scripted; the tests of the binary observe real ones.

use async_trait::async_trait;
use leasehold_core::graph::NodeRun;
use leasehold_core::{ExecutionId, JsonText, Timestamp, Version, VersionBody};
use leasehold_engine::{
    Description, EndedPage, Engine, Error, Result, Start, StartOutcome, StopAck,
};
use leasehold_store::fresh_id;
use leasehold_telemetry::{ExpositionFormat, ObservedEngine, Telemetry};
use std::sync::{Arc, Mutex};

/// An engine with scripted answers.
#[derive(Default)]
struct ScriptedEngine {
    start: Mutex<Option<StartOutcome>>,
    error: Mutex<Option<Error>>,
    knows: Mutex<bool>,
}

impl ScriptedEngine {
    fn answer<T>(&self, known: T, unknown: T) -> Result<T> {
        match self.error.lock().unwrap().clone() {
            Some(error) => Err(error),
            None if *self.knows.lock().unwrap() => Ok(known),
            None => Ok(unknown),
        }
    }
}

#[async_trait]
impl Engine for ScriptedEngine {
    fn name(&self) -> &'static str {
        "scripted"
    }

    async fn start(&self, _: &Start) -> StartOutcome {
        self.start.lock().unwrap().clone().unwrap()
    }

    async fn describe(&self, _: ExecutionId) -> Result<Description> {
        self.answer(Description::Open, Description::NotFound)
    }

    async fn cancel(&self, _: ExecutionId, _: &str) -> Result<StopAck> {
        self.answer(StopAck::Acknowledged, StopAck::NotFound)
    }

    async fn terminate(&self, _: ExecutionId, _: &str) -> Result<StopAck> {
        self.answer(StopAck::Acknowledged, StopAck::NotFound)
    }

    async fn ended_since(&self, _: Timestamp, _: Option<Vec<u8>>) -> Result<EndedPage> {
        self.answer(EndedPage::default(), EndedPage::default())
    }

    async fn pollers(&self, _: &VersionBody) -> Result<Option<usize>> {
        self.answer(Some(1), None)
    }

    async fn nodes(&self, _: ExecutionId, _: &VersionBody) -> Result<Option<Vec<NodeRun>>> {
        self.answer(Some(Vec::new()), None)
    }

    async fn output(&self, _: ExecutionId, _: &VersionBody, _: usize) -> Result<Option<JsonText>> {
        self.answer(Some(JsonText::default()), None)
    }

    async fn health(&self) -> Result<()> {
        self.answer((), ())
    }
}

struct EngineFixture {
    script: Arc<ScriptedEngine>,
    engine: ObservedEngine,
    telemetry: Telemetry,
}

impl EngineFixture {
    fn new() -> Self {
        let (script, telemetry) = (Arc::new(ScriptedEngine::default()), Telemetry::default());
        Self {
            engine: ObservedEngine::new(script.clone(), &telemetry),
            script,
            telemetry,
        }
    }

    /// Returns the counted calls by outcome, and how many calls were timed.
    fn counted(&self) -> (Vec<String>, f64) {
        let text = self
            .telemetry
            .metrics
            .render(ExpositionFormat::Prometheus)
            .unwrap();
        let calls = text.lines().filter_map(|line| {
            let line =
                line.strip_prefix("leasehold_engine_calls_total{engine=\"scripted\",call=\"")?;
            let (call, rest) = line.split_once("\",outcome=\"")?;
            let (outcome, count) = rest.split_once("\"} ")?;
            (count != "0").then(|| format!("{call} {outcome} {count}"))
        });
        let timed = text.lines().filter_map(|line| {
            let (_, count) = line
                .strip_prefix("leasehold_engine_call_duration_seconds_count{")?
                .rsplit_once(' ')?;
            count.parse::<f64>().ok()
        });
        let mut calls: Vec<String> = calls.collect();
        calls.sort();
        (calls, timed.sum())
    }
}

fn start() -> Start {
    let body = VersionBody::Binding {
        workflow_type: "Order".to_owned(),
        task_queue: "orders".to_owned(),
    };
    Start {
        execution: fresh_id(),
        request: fresh_id(),
        workspace: fresh_id(),
        definition: fresh_id(),
        version: Arc::new(Version {
            id: fresh_id(),
            workspace: fresh_id(),
            definition: fresh_id(),
            number: 1,
            body,
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
async fn outcomes_of_a_start_are_counted_separately() {
    let fixture = EngineFixture::new();
    let error = || "no answer".to_owned();
    for outcome in [
        StartOutcome::Started,
        StartOutcome::AlreadyStarted { ended: true },
        StartOutcome::Refused { error: error() },
        StartOutcome::Unknown { error: error() },
        StartOutcome::Unavailable {
            error: error(),
            reached: false,
        },
    ] {
        *fixture.script.start.lock().unwrap() = Some(outcome.clone());
        assert_eq!(fixture.engine.start(&start()).await, outcome);
    }
    let (calls, timed) = fixture.counted();
    let outcomes = [
        "already_started",
        "refused",
        "started",
        "unavailable",
        "unknown",
    ];
    let expected = outcomes.map(|outcome| format!("start {outcome} 1"));
    assert_eq!(calls, expected);
    assert_eq!(timed, 5.0);
}

#[tokio::test]
async fn answers_are_counted_as_ok_not_found_unavailable_or_failed() {
    let fixture = EngineFixture::new();
    let script = &fixture.script;
    let unavailable = || Error::Unavailable("away".to_owned());
    let failed = || Error::Failed("strange".to_owned());
    for (knows, error) in [
        (true, None),
        (false, None),
        (true, Some(unavailable())),
        (true, Some(failed())),
    ] {
        *script.knows.lock().unwrap() = knows;
        *script.error.lock().unwrap() = error.clone();
        let answer = fixture.engine.describe(fresh_id()).await;
        assert_eq!(answer.err(), error);
        let answer = fixture.engine.health().await;
        assert_eq!(answer.err(), error);
    }
    let (calls, timed) = fixture.counted();
    let expected = [
        "describe failed 1",
        "describe not_found 1",
        "describe ok 1",
        "describe unavailable 1",
        "health failed 1",
        "health ok 2",
        "health unavailable 1",
    ];
    assert_eq!(calls, expected);
    assert_eq!(timed, 8.0);
}
