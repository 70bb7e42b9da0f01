//! The life of a request as the dispatcher lives it, in short words: claimed, started, ended, given back.

use crate::ground::{Ground, Site, order};
use leasehold_core::{ExecutionEnd, ExecutionId};
use leasehold_store::execution::ExecutionFinish;
use leasehold_store::request::{
    Claim, ClaimOutcome, ClaimRef, ClaimedRequest, Release, ReleaseKind,
};
use serde_json::{Value, json};
use std::time::Duration;

const OWNER: &str = "dispatcher";

impl Ground {
    /// Enqueues a request through the API and answers its id.
    pub(crate) async fn enqueue(&self, site: &Site) -> String {
        self.enqueue_as(site, json!({})).await
    }

    /// Enqueues a request with more fields.
    pub(crate) async fn enqueue_as(&self, site: &Site, fields: Value) -> String {
        let mut body = order(site);
        for (name, value) in fields.as_object().unwrap() {
            body[name] = value.clone();
        }
        let made = self.post(&site.path("/requests"), &site.key, body).await;
        made.expect(201)["id"].as_str().unwrap().to_owned()
    }

    /// Admits up to so many requests.
    pub(crate) async fn claim(&self, batch: u32) -> Vec<ClaimedRequest> {
        let claim = Claim {
            owner: OWNER.to_owned(),
            batch,
            lease: Duration::from_secs(60),
            lock: None,
        };
        match self.store.request_claim(&claim).await.unwrap() {
            ClaimOutcome::Claimed(claimed) => claimed.requests,
            ClaimOutcome::LockLost => panic!("no lock was asked for"),
        }
    }

    /// Enqueues a request and admits it.
    pub(crate) async fn claimed(&self, site: &Site) -> ClaimedRequest {
        let id = self.enqueue(site).await;
        let claimed = self.claim(100).await;
        let own = claimed.into_iter().find(|c| c.id.to_string() == id);
        own.expect("it is admitted")
    }

    /// Enqueues a request, admits and starts it.
    pub(crate) async fn running(&self, site: &Site) -> ClaimedRequest {
        let claimed = self.claimed(site).await;
        let claims = [ClaimRef::from(&claimed)];
        self.store.request_dispatched(OWNER, &claims).await.unwrap();
        claimed
    }

    /// A request whose execution ended so.
    pub(crate) async fn ended(&self, site: &Site, end: ExecutionEnd) -> ClaimedRequest {
        let running = self.running(site).await;
        self.finish(running.execution, end).await;
        running
    }

    pub(crate) async fn finish(&self, execution: ExecutionId, end: ExecutionEnd) {
        let finish = ExecutionFinish {
            execution,
            end,
            error: None,
        };
        self.store
            .execution_finish("follower", &[finish])
            .await
            .unwrap();
    }

    pub(crate) async fn release(&self, claimed: &ClaimedRequest, kind: ReleaseKind, seconds: u64) {
        let release = Release {
            claim: claimed.into(),
            kind,
            delay: Duration::from_secs(seconds),
            error: Some("the engine said no".to_owned()),
        };
        self.store.request_release(OWNER, &[release]).await.unwrap();
    }
}
