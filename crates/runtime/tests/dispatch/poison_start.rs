//! A request whose start never gets an answer, beside good tenants, on a real Temporal server: the good requests do not notice.

#![allow(clippy::print_stdout, reason = "prints measurements")]

use crate::dispatch_env::{DispatchEnv, Setup, until};
use crate::logs;
use crate::swallowing_proxy::SwallowingProxy;
use leasehold_core::breaker::BreakerState;
use leasehold_core::retry::Backoff;
use leasehold_core::{RequestId, RequestStatus};
use leasehold_runtime::{DispatcherOptions, Runtime};
use leasehold_testbed::{BackendKind, TestWorkspace};
use leasehold_testkit::{TestTemporal, sized};
use serde_json::json;
use std::time::Duration;
use tokio::time::{Instant, interval};
use tracing::Level;

const TENANTS: usize = 9;
/// Each good tenant enqueues a request this often.
const ENQUEUE_EVERY: Duration = Duration::from_millis(500);
/// No good request waits longer than this, plus the longest wait without a poison request on this machine.
const LONGEST_WAIT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(200);

/// What depends on the size of the test. At its usual size it shares the machine with other tests: a good start may take seconds.
struct Sizes {
    without_poison: Duration,
    with_poison: Duration,
    /// After this time a start without an answer is repeated.
    call_timeout: Duration,
    poison_starts: usize,
    /// Whether the engine's server serves this test alone, so that good starts do not time out too and their waits can be compared.
    is_alone: bool,
}

fn sizes() -> Sizes {
    Sizes {
        without_poison: Duration::from_secs(sized(4, 20)),
        with_poison: Duration::from_secs(sized(15, 60)),
        call_timeout: Duration::from_secs(sized(4, 1)),
        poison_starts: sized(3, 20),
        is_alone: sized(false, true),
    }
}

scenarios! {
    both: poison_start_does_not_delay_nine_good_tenants;
}

async fn poison_start_does_not_delay_nine_good_tenants(on: BackendKind) {
    let proxy = SwallowingProxy::to(TestTemporal::shared().address()).await;
    let setup = Setup {
        temporal: Some(proxy.address()),
        call_timeout: Some(sizes().call_timeout),
        ..Setup::default()
    };
    let env = DispatchEnv::with(on, setup).await;
    let mut tenants = Vec::new();
    for _ in 0..TENANTS {
        tenants.push(env.workspace(10_000).await);
    }
    let bad = env.workspace(1).await;
    let runtime = env.runtime(|options| {
        options.dispatcher = DispatcherOptions {
            backoff: Backoff {
                base: PAUSE,
                max: PAUSE,
                ..Backoff::default()
            },
            ..DispatcherOptions::new("instance")
        };
    });
    // The first starts connect.
    let first = env.enqueue(&tenants[0], 3).await;
    env.until_all(&tenants[0], &first, RequestStatus::Dispatched)
        .await;

    let without = waits(&env, &tenants, sizes().without_poison).await;
    let poison = enqueue_poison(&env, &bad, &proxy).await;
    let with = waits(&env, &tenants, sizes().with_poison).await;
    report(on, "without a poison request", &without);
    report(on, "beside a poison request", &with);
    assert_untouched(&env, &runtime, &proxy, (&bad, poison)).await;
    let longest = |waits: &[Duration]| percentile(waits, 100);
    assert!(
        !sizes().is_alone || longest(&with) <= LONGEST_WAIT + longest(&without),
        "{with:?}"
    );
    runtime.stop().await;
}

/// Enqueues a request whose starts the proxy leaves without an answer.
async fn enqueue_poison(
    env: &DispatchEnv,
    workspace: &TestWorkspace,
    proxy: &SwallowingProxy,
) -> RequestId {
    let text = format!("poison-{}", workspace.workspace);
    proxy.swallow(text.clone());
    let params = json!({ "text": text });
    let enqueued = env.enqueue_with(workspace, 1, |new| new.params = params.clone().into());
    let id = enqueued.await[0];
    until("the first answer is swallowed", async || {
        proxy.swallowed() > 0
    })
    .await;
    id
}

/// Lets every tenant enqueue for this long, and returns how long its requests waited for their start, by the recorded times, shortest first.
async fn waits(env: &DispatchEnv, tenants: &[TestWorkspace], period: Duration) -> Vec<Duration> {
    let mut enqueued: Vec<(&TestWorkspace, RequestId)> = Vec::new();
    let end = Instant::now() + period;
    let mut ticks = interval(ENQUEUE_EVERY);
    while Instant::now() < end {
        ticks.tick().await;
        for tenant in tenants {
            enqueued.push((tenant, env.enqueue_one(tenant).await));
        }
    }
    let mut waits = Vec::new();
    for (tenant, id) in enqueued {
        env.until_all(tenant, &[id], RequestStatus::Dispatched)
            .await;
        let events = tenant.timeline(&*env.store, id).await;
        let is_dispatched = |to: Option<RequestStatus>| to == Some(RequestStatus::Dispatched);
        let dispatched = events.iter().find(|event| is_dispatched(event.to.known()));
        let waited = dispatched.unwrap().at.duration_since(events[0].at);
        waits.push(Duration::try_from(waited).unwrap_or_default());
    }
    waits.sort_unstable();
    waits
}

fn percentile(waits: &[Duration], percent: usize) -> Duration {
    waits[(waits.len() * percent / 100).min(waits.len() - 1)]
}

fn report(on: BackendKind, run: &str, waits: &[Duration]) {
    let at = |percent| percentile(waits, percent);
    println!(
        "{on:?}, {run}: {} requests, waited p50 {:?}, p99 {:?}, longest {:?}",
        waits.len(),
        at(50),
        at(99),
        at(100)
    );
}

/// Asserts that the poison request was started again and again and kept its slot and, if the engine had no other load, that the breaker never opened.
async fn assert_untouched(
    env: &DispatchEnv,
    runtime: &Runtime,
    proxy: &SwallowingProxy,
    poison: (&TestWorkspace, RequestId),
) {
    if sizes().is_alone {
        let opened = logs::count(Level::ERROR, &["engine unavailable; dispatch paused"]);
        assert_eq!(opened, 0);
        let breaker = runtime.circuit_breaker();
        assert_eq!(breaker.state(), BreakerState::Closed);
        assert!(breaker.is_engine_healthy());
        assert_eq!(breaker.failing_requests(), 1);
    }
    assert!(
        proxy.swallowed() >= sizes().poison_starts,
        "{} swallowed",
        proxy.swallowed()
    );
    let request = env.get(poison.0, poison.1).await;
    assert_eq!(
        (request.dispatch_failures, env.in_use(poison.0).await),
        (0, 1)
    );
}
