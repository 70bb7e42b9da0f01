//! Queues: showing and changing them, and the limit of all.

use super::shown_jobs as shown;
use crate::access::Access;
use crate::body::Json;
use crate::openapi::{Common, Unknown};
use crate::params::{Paging, Path, Query, answered};
use crate::refusal::{Outcome, Refusal};
use crate::route::Routes;
use crate::state::State;
use axum::extract::State as Reached;
use leasehold_api::Page;
use leasehold_api::queue::{JobCounts, JobLimit, Queue, QueueChange};
use leasehold_ops as ops;
use leasehold_store as store;
use std::time::Duration;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .add(routes!(list), Access::Admin)
        .add(routes!(get), Access::Queue)
        .add(routes!(update), Access::Admin)
        .add(routes!(counts), Access::Queue)
        .add(routes!(limit), Access::Admin)
        .add(routes!(set_limit), Access::Admin)
}

/// All queues, by name.
#[utoipa::path(get, path = "/v1/queues", operation_id = "queue_list", tag = "queues", params(Paging),
    responses((status = 200, body = Page<Queue>), Common))]
async fn list(
    Reached(state): Reached<State>,
    Query(paging): Query<Paging>,
) -> Outcome<Json<Page<Queue>>> {
    let page = paging.page()?;
    let limit = page.limit;
    let queues = state.store.queue_list(&page).await?;
    let next = |queue: &store::queue::Queue| queue.name.clone();
    Ok(Json(answered(queues, limit, next, shown::queue)))
}

/// A queue: there is one when a job was put into it, or something of it was changed.
#[utoipa::path(get, path = "/v1/queues/{queue}", operation_id = "queue_get", tag = "queues", params(("queue" = String, Path)),
    responses((status = 200, body = Queue), Common, Unknown))]
async fn get(Reached(state): Reached<State>, Path(name): Path<String>) -> Outcome<Json<Queue>> {
    Ok(Json(shown::queue(found(&state, &name).await?)))
}

/// Changes a queue, or makes it: its limit, its pause, what holds for jobs that do not say. A lower limit lets what runs finish.
#[utoipa::path(patch, path = "/v1/queues/{queue}", operation_id = "queue_update", tag = "queues", request_body = QueueChange,
    params(("queue" = String, Path)), responses((status = 200, body = Queue), Common))]
async fn update(
    Reached(state): Reached<State>,
    Path(name): Path<String>,
    Json(change): Json<QueueChange>,
) -> Outcome<Json<Queue>> {
    let update = ops::QueueUpdate {
        limit: change.limit,
        paused: change.paused,
        keep_completed: change.keep_completed,
        lease: change.lease_ms.map(Duration::from_millis),
        max_attempts: change.max_attempts,
        backoff: change.backoff.map(shown::to_backoff),
        timeout: change
            .timeout_ms
            .map(|timeout| timeout.map(Duration::from_millis)),
    };
    let changed = ops::queue::update(&*state.store, &name, update).await?;
    Ok(Json(shown::queue(changed)))
}

/// How many jobs a queue has, counted now.
#[utoipa::path(get, path = "/v1/queues/{queue}/counts", operation_id = "queue_counts", tag = "queues",
    params(("queue" = String, Path)), responses((status = 200, body = JobCounts), Common, Unknown))]
async fn counts(
    Reached(state): Reached<State>,
    Path(name): Path<String>,
) -> Outcome<Json<JobCounts>> {
    let queue = found(&state, &name).await?;
    let counts = state.store.queue_counts(&queue.name).await?;
    Ok(Json(shown::counts(counts)))
}

async fn found(state: &State, name: &str) -> Outcome<store::queue::Queue> {
    if ops::job::check_queue(name).is_err() {
        return Err(Refusal::not_found());
    }
    let queue = state.store.queue_get(name).await?;
    queue.ok_or_else(Refusal::not_found)
}

/// How many jobs of all queues together may run at once.
#[utoipa::path(get, path = "/v1/job-limit", operation_id = "job_limit_get", tag = "queues",
    responses((status = 200, body = JobLimit), Common))]
async fn limit(Reached(state): Reached<State>) -> Outcome<Json<JobLimit>> {
    let limit = state.store.job_limit().await?;
    Ok(Json(JobLimit { limit }))
}

/// Sets how many jobs of all queues together may run at once. A lower limit lets what runs finish.
#[utoipa::path(put, path = "/v1/job-limit", operation_id = "job_limit_set", tag = "queues", request_body = JobLimit,
    responses((status = 200, body = JobLimit), Common))]
async fn set_limit(
    Reached(state): Reached<State>,
    Json(new): Json<JobLimit>,
) -> Outcome<Json<JobLimit>> {
    ops::job::set_limit(&*state.store, new.limit).await?;
    Ok(Json(new))
}
