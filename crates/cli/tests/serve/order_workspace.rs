//! A workspace with a definition and user actions: enqueue, read, wait. Knows no process and no Temporal.

use crate::TIMEOUT;
use leasehold_core::{DefinitionId, RequestId, RequestStatus, VersionBody, WorkspaceId};
use leasehold_ops::{EnqueueError, Enqueuer};
use leasehold_store::change::Event;
use leasehold_store::request::{
    Cancelled, Counts, Enqueue, Idempotency, NewRequest, Request, RequestFilter,
};
use leasehold_store::workspace::SlotUse;
use leasehold_store::{Page, Store, fresh_id};
use leasehold_testbed::{TestWorkspace, USER};
use leasehold_testkit::eventually;
use serde_json::Value;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

/// A workspace with `Order` published in it.
pub(crate) struct OrderWorkspace {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) workspace: WorkspaceId,
    pub(crate) order: TestWorkspace,
    enqueuer: Enqueuer,
}

impl OrderWorkspace {
    /// Creates a workspace with this limit.
    pub(crate) async fn new(store: Arc<dyn Store>, limit: u32) -> Self {
        let order = TestWorkspace::new(&*store, limit).await;
        Self {
            store,
            workspace: order.workspace,
            order,
            enqueuer: Enqueuer::default(),
        }
    }

    pub(crate) async fn define(
        &self,
        body: VersionBody,
        timeout: Option<Duration>,
    ) -> TestWorkspace {
        TestWorkspace::define(&*self.store, self.workspace, body, timeout).await
    }

    /// Enqueues one order.
    pub(crate) async fn enqueue(&self, params: Value) -> RequestId {
        self.enqueue_many(1, &params).await[0]
    }

    /// Enqueues `count` orders in one call.
    pub(crate) async fn enqueue_many(&self, count: usize, params: &Value) -> Vec<RequestId> {
        let all = (0..count).map(|_| (self.order.definition, params.clone()));
        self.enqueue_all(all.collect()).await
    }

    /// Enqueues all in one call.
    pub(crate) async fn enqueue_all(&self, all: Vec<(DefinitionId, Value)>) -> Vec<RequestId> {
        let requests = all
            .into_iter()
            .map(|(definition, params)| NewRequest::new(fresh_id(), definition, params))
            .collect();
        self.try_enqueue(requests).await.unwrap()
    }

    /// Enqueues an order with an idempotency key; returns errors.
    pub(crate) async fn enqueue_once(
        &self,
        key: &str,
        params: Value,
    ) -> Result<RequestId, EnqueueError> {
        let request = NewRequest {
            idempotency: Some(Idempotency {
                key: key.to_owned(),
                window: None,
            }),
            ..NewRequest::new(fresh_id(), self.order.definition, params)
        };
        Ok(self.try_enqueue(vec![request]).await?[0])
    }

    async fn try_enqueue(&self, requests: Vec<NewRequest>) -> Result<Vec<RequestId>, EnqueueError> {
        let call = Enqueue {
            workspace: self.workspace,
            requests,
            by: USER.to_owned(),
        };
        let all = self.enqueuer.enqueue(&*self.store, call).await?;
        Ok(all.into_iter().map(|request| request.id).collect())
    }

    pub(crate) async fn cancel(&self, request: RequestId) -> Cancelled {
        self.order.cancel(&*self.store, request, false).await
    }

    pub(crate) async fn get(&self, id: RequestId) -> Request {
        self.order.get(&*self.store, id).await
    }

    /// Every request of the workspace.
    pub(crate) async fn all(&self) -> Vec<Request> {
        let filter = RequestFilter {
            workspace: Some(self.workspace),
            ..RequestFilter::default()
        };
        let mut all: Vec<Request> = Vec::new();
        loop {
            let page = Page {
                after: all.last().map(|request| request.id),
                limit: 1000,
            };
            let more = self.store.request_list(&filter, page).await.unwrap();
            if more.is_empty() {
                return all;
            }
            all.extend(more);
        }
    }

    pub(crate) async fn counts(&self) -> Counts {
        self.order.counts(&*self.store).await
    }

    /// The counts after the database has restarted.
    pub(crate) async fn counts_after_restart(&self) -> Counts {
        let counts = Cell::new(None);
        self.until("reachable again", |now| {
            counts.set(Some(*now));
            true
        })
        .await;
        counts.get().unwrap()
    }

    pub(crate) async fn slots(&self) -> SlotUse {
        self.order.slots(&*self.store).await
    }

    pub(crate) async fn timeline(&self, id: RequestId) -> Vec<Event> {
        self.order.timeline(&*self.store, id).await
    }

    /// Waits until the counts satisfy the condition; retries while the database is unreachable.
    pub(crate) async fn until(&self, what: &str, condition: impl Fn(&Counts) -> bool) {
        self.until_for(TIMEOUT, what, condition).await;
    }

    /// Like `until`, with its own timeout.
    pub(crate) async fn until_for(
        &self,
        timeout: Duration,
        what: &str,
        condition: impl Fn(&Counts) -> bool,
    ) {
        let held = eventually(timeout, async || {
            let counts = self.store.request_counts(self.workspace).await;
            counts.is_ok_and(|counts| condition(&counts))
        });
        if !held.await {
            panic!(
                "not {what}: {:?}",
                self.store.request_counts(self.workspace).await
            );
        }
    }

    /// Waits until the request has been dispatched and returns it.
    pub(crate) async fn dispatched(&self, id: RequestId) -> Request {
        let held = eventually(TIMEOUT, async || self.get(id).await.dispatched_at.is_some());
        assert!(held.await, "not dispatched: {:?}", self.get(id).await);
        self.get(id).await
    }

    /// The actors of the transitions to this status, in order.
    pub(crate) async fn actors_of(&self, id: RequestId, to: RequestStatus) -> Vec<String> {
        let timeline = self.timeline(id).await.into_iter();
        timeline
            .filter(|event| event.to == to)
            .map(|event| event.by)
            .collect()
    }
}
