//! Queues: list, show and change them; the limit of running jobs of all queues.

use super::convert_jobs as convert;
use crate::access::{Access, Caller};
use crate::api_error::{ApiError, ApiResult};
use crate::body::Json;
use crate::openapi::{CommonResponses, NotFoundResponse};
use crate::params::{Paging, Path, Query, page_response};
use crate::route::Routes;
use crate::state::State;
use axum::Extension;
use axum::extract::State as AxumState;
use leasehold_api::Page;
use leasehold_api::queue::{JobCounts, JobLimit, Queue, QueueChange, QueueSharing};
use leasehold_ops as ops;
use leasehold_store as store;
use leasehold_store::queue::QueueOwnership;
use std::collections::HashMap;
use std::time::Duration;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .add(routes!(list), Access::Admin)
        .add(routes!(get), Access::Queue)
        .add(routes!(update), Access::Admin)
        .add(routes!(share), Access::Admin)
        .add(routes!(counts), Access::Queue)
        .add(routes!(limit), Access::Admin)
        .add(routes!(set_limit), Access::Admin)
}

/// Lists all queues, by name.
#[utoipa::path(get, path = "/v1/queues", operation_id = "queue_list", tag = "queues", params(Paging),
    responses((status = 200, body = Page<Queue>), CommonResponses))]
async fn list(
    AxumState(state): AxumState<State>,
    Query(paging): Query<Paging>,
) -> ApiResult<Json<Page<Queue>>> {
    let cursors = state.cursors.of("queue_list", None).await?;
    let page = paging.page(&cursors)?;
    let limit = page.limit;
    let queues = state.store.queue_list(&page).await?;
    let names: Vec<String> = queues.iter().map(|queue| queue.name.clone()).collect();
    let ownership = ops::queue::ownership(&*state.store, &names).await?;
    let ownership: HashMap<String, QueueOwnership> = ownership
        .into_iter()
        .map(|ownership| (ownership.queue.clone(), ownership))
        .collect();
    let next = |queue: &store::queue::Queue| queue.name.clone();
    let shown = |queue: store::queue::Queue| {
        let ownership = ownership.get(&queue.name).cloned();
        convert::queue_with(queue, ownership)
    };
    Ok(Json(page_response(queues, limit, &cursors, next, shown)))
}

/// Returns a queue. A queue exists once a job was enqueued in it or its settings were changed.
#[utoipa::path(get, path = "/v1/queues/{queue}", operation_id = "queue_get", tag = "queues", params(("queue" = String, Path)),
    responses((status = 200, body = Queue), CommonResponses, NotFoundResponse))]
async fn get(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> ApiResult<Json<Queue>> {
    let queue = find_queue(&state, &name).await?;
    if caller.is_admin() {
        return with_ownership(&state, queue).await;
    }
    Ok(Json(convert::queue(queue)))
}

async fn with_ownership(state: &State, queue: store::queue::Queue) -> ApiResult<Json<Queue>> {
    let names = [queue.name.clone()];
    let mut ownership = ops::queue::ownership(&*state.store, &names).await?;
    Ok(Json(convert::queue_with(queue, ownership.pop())))
}

/// Changes the settings of a queue, or creates it: limit, pause, defaults of its jobs. Running jobs above a lower limit finish.
#[utoipa::path(patch, path = "/v1/queues/{queue}", operation_id = "queue_update", tag = "queues", request_body = QueueChange,
    params(("queue" = String, Path)), responses((status = 200, body = Queue), CommonResponses))]
async fn update(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    Json(change): Json<QueueChange>,
) -> ApiResult<Json<Queue>> {
    let update = ops::QueueUpdate {
        limit: change.limit,
        paused: change.paused,
        keep_completed: change.keep_completed,
        lease: change.lease_ms.map(Duration::from_millis),
        max_attempts: change.max_attempts,
        backoff: change.backoff.map(convert::to_backoff),
        timeout: change
            .timeout_ms
            .map(|timeout| timeout.map(Duration::from_millis)),
    };
    let changed = ops::queue::update(&*state.store, &name, update, &caller.actor()).await?;
    with_ownership(&state, changed).await
}

/// Sets whose graphs may use a queue besides its owner's: replaces the list of workspaces, or shares the queue with all. A queue that does not exist is
/// created for the installation. Nodes that start later are checked against the new sharing.
#[utoipa::path(put, path = "/v1/queues/{queue}/sharing", operation_id = "queue_share", tag = "queues", request_body = QueueSharing,
    params(("queue" = String, Path)), responses((status = 200, body = Queue), CommonResponses, NotFoundResponse))]
async fn share(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    Json(new): Json<QueueSharing>,
) -> ApiResult<Json<Queue>> {
    let with = convert::to_shared_with(new.shared_with);
    let ownership = ops::queue::share(&*state.store, &name, &with, &caller.actor()).await?;
    let queue = find_queue(&state, &name).await?;
    Ok(Json(convert::queue_with(queue, Some(ownership))))
}

/// Counts the jobs of a queue by status.
#[utoipa::path(get, path = "/v1/queues/{queue}/counts", operation_id = "queue_counts", tag = "queues",
    params(("queue" = String, Path)), responses((status = 200, body = JobCounts), CommonResponses, NotFoundResponse))]
async fn counts(
    AxumState(state): AxumState<State>,
    Path(name): Path<String>,
) -> ApiResult<Json<JobCounts>> {
    let queue = find_queue(&state, &name).await?;
    let counts = state.store.queue_counts(&queue.name).await?;
    Ok(Json(convert::counts(counts)))
}

async fn find_queue(state: &State, name: &str) -> ApiResult<store::queue::Queue> {
    if ops::job::check_queue(name).is_err() {
        return Err(ApiError::not_found("queue"));
    }
    let queue = state.store.queue_get(name).await?;
    queue.ok_or_else(|| ApiError::not_found("queue"))
}

/// Returns the limit of running jobs of all queues together.
#[utoipa::path(get, path = "/v1/job-limit", operation_id = "job_limit_get", tag = "queues",
    responses((status = 200, body = JobLimit), CommonResponses))]
async fn limit(AxumState(state): AxumState<State>) -> ApiResult<Json<JobLimit>> {
    let limit = state.store.job_limit().await?;
    Ok(Json(JobLimit { limit }))
}

/// Sets the limit of running jobs of all queues together. Running jobs above a lower limit finish.
#[utoipa::path(put, path = "/v1/job-limit", operation_id = "job_limit_set", tag = "queues", request_body = JobLimit,
    responses((status = 200, body = JobLimit), CommonResponses))]
async fn set_limit(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Json(new): Json<JobLimit>,
) -> ApiResult<Json<JobLimit>> {
    ops::job::set_limit(&*state.store, new.limit, &caller.actor()).await?;
    Ok(Json(new))
}
