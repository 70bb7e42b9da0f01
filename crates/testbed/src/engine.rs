//! A fake engine that starts nothing and returns what a test sets: fault injection at the engine port.

use async_trait::async_trait;
use leasehold_core::graph::NodeRun;
use leasehold_core::why::EngineFacts;
use leasehold_core::{ExecutionId, JsonText, Timestamp, VersionBody};
use leasehold_engine::{
    Description, EndedPage, Engine, Error, Result, Start, StartOutcome, StopAck,
};
use leasehold_server::EngineWatch;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The number of pollers that a [`TestEngine`] reports.
#[derive(Clone, Copy, Debug)]
pub enum Pollers {
    /// This number, or none if the version needs no pollers.
    Known(Option<usize>),
    /// The call never returns.
    Silent,
    /// The call fails.
    Broken,
}

/// An engine whose results a test sets.
pub struct TestEngine {
    facts: Mutex<EngineFacts>,
    pollers: Mutex<Pollers>,
    nodes: Mutex<Result<Option<Vec<NodeRun>>>>,
    /// Whether calls for nodes never return, and how many do not.
    hangs: AtomicBool,
    hanging: AtomicUsize,
}

impl TestEngine {
    /// Creates an engine with this health.
    pub fn new(facts: EngineFacts) -> Self {
        Self {
            facts: Mutex::new(facts),
            pollers: Mutex::new(Pollers::Known(Some(1))),
            nodes: Mutex::new(Ok(None)),
            hangs: AtomicBool::new(false),
            hanging: AtomicUsize::new(0),
        }
    }

    /// Sets the health of the engine as the server sees it.
    pub fn set_facts(&self, facts: EngineFacts) {
        *self.facts.lock().unwrap() = facts;
    }

    /// Sets the nodes of every execution.
    pub fn set_nodes(&self, nodes: Result<Option<Vec<NodeRun>>>) {
        *self.nodes.lock().unwrap() = nodes;
    }

    /// Lets further calls for nodes hang, or return.
    pub fn set_hanging(&self, hangs: bool) {
        self.hangs.store(hangs, Ordering::SeqCst);
    }

    /// Returns how many calls for nodes hang.
    pub fn hanging(&self) -> usize {
        self.hanging.load(Ordering::SeqCst)
    }

    /// Sets the reported pollers.
    pub fn set_pollers(&self, pollers: Pollers) {
        *self.pollers.lock().unwrap() = pollers;
    }
}

/// Counts a call that hangs, until it is dropped.
struct HangingCall<'a>(&'a AtomicUsize);

impl<'a> HangingCall<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for HangingCall<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
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
        if self.hangs.load(Ordering::SeqCst) {
            let _hanging = HangingCall::begin(&self.hanging);
            std::future::pending::<()>().await;
        }
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

    async fn cancel(&self, _execution: ExecutionId, _reason: &str) -> Result<StopAck> {
        Ok(StopAck::NotFound)
    }

    async fn terminate(&self, _execution: ExecutionId, _reason: &str) -> Result<StopAck> {
        Ok(StopAck::NotFound)
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
