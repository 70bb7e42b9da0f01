//! An engine that starts nothing and answers what a test sets: fault injection at the engine port.

use async_trait::async_trait;
use leasehold_core::graph::NodeRun;
use leasehold_core::why::EngineFacts;
use leasehold_core::{ExecutionId, JsonText, Timestamp, VersionBody};
use leasehold_engine::{Description, EndedPage, Engine, Error, Result, Start, StartOutcome, Told};
use leasehold_server::EngineWatch;
use std::sync::Mutex;

/// What a [`TestEngine`] answers when it is asked for pollers.
#[derive(Clone, Copy, Debug)]
pub enum Pollers {
    /// So many, or none where the version needs none.
    Known(Option<usize>),
    /// No answer at all.
    Silent,
    /// An error.
    Broken,
}

/// An engine whose answers a test sets.
pub struct TestEngine {
    facts: Mutex<EngineFacts>,
    pollers: Mutex<Pollers>,
    nodes: Mutex<Result<Option<Vec<NodeRun>>>>,
}

impl TestEngine {
    /// An engine of which the server believes this.
    pub fn new(facts: EngineFacts) -> Self {
        Self {
            facts: Mutex::new(facts),
            pollers: Mutex::new(Pollers::Known(Some(1))),
            nodes: Mutex::new(Ok(None)),
        }
    }

    /// Sets what the server believes of the engine.
    pub fn set_facts(&self, facts: EngineFacts) {
        *self.facts.lock().unwrap() = facts;
    }

    /// Sets the answer about the nodes of every execution.
    pub fn set_nodes(&self, nodes: Result<Option<Vec<NodeRun>>>) {
        *self.nodes.lock().unwrap() = nodes;
    }

    /// Sets the answer about pollers.
    pub fn set_pollers(&self, pollers: Pollers) {
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
            error: "the test engine starts nothing".to_owned(),
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
