//! An engine that starts nothing and says of itself what a scenario wants: fault injection at the port.

use async_trait::async_trait;
use leasehold_core::graph::NodeRun;
use leasehold_core::why::EngineFacts;
use leasehold_core::{ExecutionId, JsonText, Timestamp, VersionBody};
use leasehold_engine::{Description, EndedPage, Engine, Error, Result, Start, StartOutcome, Told};
use leasehold_server::EngineWatch;
use std::sync::Mutex;

/// What the engine says when it is asked for pollers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pollers {
    /// So many, or none where it needs none.
    Known(Option<usize>),
    /// It does not answer at all.
    Silent,
    /// It answers with an error.
    Broken,
}

pub(crate) struct TestEngine {
    facts: Mutex<EngineFacts>,
    pollers: Mutex<Pollers>,
    nodes: Mutex<Result<Option<Vec<NodeRun>>>>,
}

impl Default for TestEngine {
    fn default() -> Self {
        Self {
            facts: Mutex::new(EngineFacts::Well),
            pollers: Mutex::new(Pollers::Known(Some(1))),
            nodes: Mutex::new(Ok(None)),
        }
    }
}

impl TestEngine {
    pub(crate) fn is(&self, facts: EngineFacts) {
        *self.facts.lock().unwrap() = facts;
    }

    /// What it says of the nodes of every execution.
    pub(crate) fn knows(&self, nodes: Result<Option<Vec<NodeRun>>>) {
        *self.nodes.lock().unwrap() = nodes;
    }

    pub(crate) fn polled_by(&self, pollers: Pollers) {
        *self.pollers.lock().unwrap() = pollers;
    }
}

impl EngineWatch for TestEngine {
    fn facts(&self) -> EngineFacts {
        self.facts.lock().unwrap().clone()
    }
}

#[async_trait]
impl Engine for TestEngine {
    fn name(&self) -> &'static str {
        "test"
    }

    async fn start(&self, _start: &Start) -> StartOutcome {
        StartOutcome::Unavailable {
            error: "it starts nothing".to_owned(),
            reached: false,
        }
    }

    async fn nodes(
        &self,
        _execution: ExecutionId,
        _body: &VersionBody,
    ) -> Result<Option<Vec<NodeRun>>> {
        self.nodes.lock().unwrap().clone()
    }

    async fn output(
        &self,
        _execution: ExecutionId,
        _body: &VersionBody,
        node: usize,
    ) -> Result<Option<JsonText>> {
        Ok(Some(JsonText::trusted(format!("{{\"of\":{node}}}"))))
    }

    async fn describe(&self, _execution: ExecutionId) -> Result<Description> {
        Ok(Description::NotFound)
    }

    async fn cancel(&self, _execution: ExecutionId, _reason: &str) -> Result<Told> {
        Ok(Told::NotFound)
    }

    async fn terminate(&self, _execution: ExecutionId, _reason: &str) -> Result<Told> {
        Ok(Told::NotFound)
    }

    async fn ended_since(&self, _since: Timestamp, _page: Option<Vec<u8>>) -> Result<EndedPage> {
        Ok(EndedPage::default())
    }

    async fn pollers(&self, _body: &VersionBody) -> Result<Option<usize>> {
        let pollers = *self.pollers.lock().unwrap();
        match pollers {
            Pollers::Known(count) => Ok(count),
            Pollers::Silent => std::future::pending().await,
            Pollers::Broken => Err(Error::Unavailable("no answer".to_owned())),
        }
    }

    async fn health(&self) -> Result<()> {
        Ok(())
    }
}
