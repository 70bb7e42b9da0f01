//! An engine that times every call and counts its outcome. Changes no result.

use crate::Telemetry;
use crate::metrics::EngineSeries;
use async_trait::async_trait;
use leasehold_core::graph::{Machine, NodeRun};
use leasehold_core::{EngineIdentity, ExecutionId, JsonText, RequestId, Timestamp, VersionBody};
use leasehold_engine::{
    Description, EndedPage, Engine, Error, Result, Start, StartOutcome, StartPrevented, StopAck,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// An engine whose calls are timed and counted.
pub struct ObservedEngine {
    inner: Arc<dyn Engine>,
    start: EngineSeries,
    prevent_start: EngineSeries,
    describe: EngineSeries,
    cancel: EngineSeries,
    terminate: EngineSeries,
    ended_since: EngineSeries,
    pollers: EngineSeries,
    nodes: EngineSeries,
    output: EngineSeries,
    health: EngineSeries,
}

impl ObservedEngine {
    /// Wraps this engine.
    pub fn new(inner: Arc<dyn Engine>, telemetry: &Telemetry) -> Self {
        let of =
            |call, outcomes| EngineSeries::new(&telemetry.metrics, inner.name(), call, outcomes);
        Self {
            start: of("start", STARTS),
            prevent_start: of("prevent_start", PLAIN),
            describe: of("describe", ANSWERS),
            cancel: of("cancel", ANSWERS),
            terminate: of("terminate", ANSWERS),
            ended_since: of("ended_since", PLAIN),
            pollers: of("pollers", PLAIN),
            nodes: of("nodes", ANSWERS),
            output: of("output", ANSWERS),
            health: of("health", PLAIN),
            inner,
        }
    }
}

const OK: &str = "ok";
const NOT_FOUND: &str = "not_found";
const UNAVAILABLE: &str = "unavailable";
const FAILED: &str = "failed";
const STARTS: &[&str] = &[
    "started",
    "already_started",
    "refused",
    "unknown",
    UNAVAILABLE,
];
const ANSWERS: &[&str] = &[OK, NOT_FOUND, UNAVAILABLE, FAILED];
const PLAIN: &[&str] = &[OK, UNAVAILABLE, FAILED];

/// Times a call and counts its outcome, which may be `not_found`.
macro_rules! timed {
    ($series:expr, $call:expr, $found:expr) => {{
        let begun = Instant::now();
        let answer = $call.await;
        let outcome = match &answer {
            Ok(found) if !$found(found) => NOT_FOUND,
            Ok(_) => OK,
            Err(Error::Unavailable(_)) => UNAVAILABLE,
            Err(Error::Failed(_)) => FAILED,
        };
        $series.record(begun.elapsed(), outcome);
        answer
    }};
}

#[async_trait]
impl Engine for ObservedEngine {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    async fn identity(&self) -> Result<EngineIdentity> {
        self.inner.identity().await
    }

    async fn start(&self, start: &Start) -> StartOutcome {
        let begun = Instant::now();
        let outcome = self.inner.start(start).await;
        let name = match &outcome {
            StartOutcome::Started => "started",
            StartOutcome::AlreadyStarted { .. } => "already_started",
            StartOutcome::Refused { .. } => "refused",
            StartOutcome::Unknown { .. } => "unknown",
            StartOutcome::Unavailable { .. } => UNAVAILABLE,
        };
        self.start.record(begun.elapsed(), name);
        outcome
    }

    fn compute_input(&self, start: &Start) {
        self.inner.compute_input(start);
    }

    fn compute_node_input(
        &self,
        start: &Start,
        machine: &Machine,
        node: usize,
        outputs: &HashMap<usize, JsonText>,
    ) {
        self.inner.compute_node_input(start, machine, node, outputs);
    }

    async fn prevent_start(
        &self,
        execution: ExecutionId,
        request: RequestId,
        reason: &str,
    ) -> Result<StartPrevented> {
        let call = self.inner.prevent_start(execution, request, reason);
        timed!(self.prevent_start, call, any)
    }

    async fn describe(&self, execution: ExecutionId) -> Result<Description> {
        let found = |description: &Description| *description != Description::NotFound;
        timed!(self.describe, self.inner.describe(execution), found)
    }

    async fn cancel(&self, execution: ExecutionId, reason: &str) -> Result<StopAck> {
        let found = |ack: &StopAck| *ack != StopAck::NotFound;
        timed!(self.cancel, self.inner.cancel(execution, reason), found)
    }

    async fn terminate(&self, execution: ExecutionId, reason: &str) -> Result<StopAck> {
        let found = |ack: &StopAck| *ack != StopAck::NotFound;
        timed!(
            self.terminate,
            self.inner.terminate(execution, reason),
            found
        )
    }

    async fn ended_since(&self, since: Timestamp, page: Option<Vec<u8>>) -> Result<EndedPage> {
        timed!(self.ended_since, self.inner.ended_since(since, page), any)
    }

    async fn pollers(&self, body: &VersionBody) -> Result<Option<usize>> {
        timed!(self.pollers, self.inner.pollers(body), any)
    }

    async fn nodes(
        &self,
        execution: ExecutionId,
        body: &VersionBody,
    ) -> Result<Option<Vec<NodeRun>>> {
        timed!(
            self.nodes,
            self.inner.nodes(execution, body),
            Option::is_some
        )
    }

    async fn output(
        &self,
        execution: ExecutionId,
        body: &VersionBody,
        node: usize,
    ) -> Result<Option<JsonText>> {
        timed!(
            self.output,
            self.inner.output(execution, body, node),
            Option::is_some
        )
    }

    async fn health(&self) -> Result<()> {
        timed!(self.health, self.inner.health(), any)
    }
}

/// Every answer counts as found.
fn any<T>(_: &T) -> bool {
    true
}
