//! Jobs: enqueue, list, show and cancel them. `claims` has the routes of workers.

use super::convert_jobs as convert;
use crate::access::{Access, Caller};
use crate::api_error::{ApiError, ApiResult};
use crate::body::{BatchJson, Json};
use crate::call_memory;
use crate::cursors::ListCursors;
use crate::lists::{JsonPage, RowMaxBytes};
use crate::openapi::{CommonResponses, ConflictResponse, NotFoundResponse};
use crate::params::{Paging, Path, Query};
use crate::route::Routes;
use crate::state::State;
use axum::Extension;
use axum::extract::State as AxumState;
use axum::http::{HeaderMap, StatusCode};
use futures::future::BoxFuture;
use leasehold_api::Page;
use leasehold_api::job::{EnqueuedJob, EnqueuedJobs, Job, NewJob, NewJobs};
use leasehold_core::limits::{PAYLOAD_MAX_BYTES, TRACE_CONTEXT_MAX_CHARS};
use leasehold_core::{JobId, JobStatus, WorkspaceId, text};
use leasehold_ops as ops;
use leasehold_store as store;
use leasehold_store::job::JobFilter;
use serde::Deserialize;
use std::collections::BTreeSet;
use utoipa::IntoParams;
use utoipa_axum::routes;

/// Bytes of an entry in the result of a batch.
const ENQUEUED_MAX_BYTES: usize = 50;

pub(super) fn routes() -> Routes {
    Routes::default()
        .add(routes!(list_of_queue), Access::Queue)
        .add(routes!(enqueue), Access::Queue.starts_trace())
        .add(routes!(enqueue_many), Access::Queue.starts_trace())
        .add(routes!(list), Access::Admin)
        .add(routes!(get), Access::Jobs)
        .add(routes!(cancel), Access::Jobs)
}

/// Filters the jobs of a queue.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct QueueJobsQuery {
    /// Only jobs in this status.
    #[param(value_type = Option<leasehold_api::job::JobStatusName>)]
    status: Option<JobStatus>,
    /// Cursor: the `next` of the previous page.
    after: Option<String>,
    /// Maximum number of items. Default: 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// Filters jobs.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct JobListQuery {
    /// Only jobs of this queue.
    queue: Option<String>,
    /// Only jobs in this status.
    #[param(value_type = Option<leasehold_api::job::JobStatusName>)]
    status: Option<JobStatus>,
    /// Cursor: the `next` of the previous page.
    after: Option<String>,
    /// Maximum number of items. Default: 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// Lists the jobs of a queue, newest first.
#[utoipa::path(get, path = "/v1/queues/{queue}/jobs", operation_id = "job_list_of_queue", tag = "jobs",
    params(("queue" = String, Path), QueueJobsQuery), responses((status = 200, body = Page<Job>), CommonResponses))]
async fn list_of_queue(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Path(queue): Path<String>,
    Query(query): Query<QueueJobsQuery>,
) -> ApiResult<JsonPage> {
    let paging = Paging {
        after: query.after,
        limit: query.limit,
    };
    let cursors = state.cursors.of("job_list_of_queue", None).await?;
    let cursors = cursors.within(&queue);
    list_jobs(
        &state,
        &caller,
        &cursors,
        Some(&queue),
        query.status,
        &paging,
    )
    .await
}

/// Lists the jobs of all queues, newest first.
#[utoipa::path(get, path = "/v1/jobs", operation_id = "job_list", tag = "jobs", params(JobListQuery),
    responses((status = 200, body = Page<Job>), CommonResponses))]
async fn list(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Query(query): Query<JobListQuery>,
) -> ApiResult<JsonPage> {
    let paging = Paging {
        after: query.after,
        limit: query.limit,
    };
    let cursors = state.cursors.of("job_list", None).await?;
    list_jobs(
        &state,
        &caller,
        &cursors,
        query.queue.as_deref(),
        query.status,
        &paging,
    )
    .await
}

async fn list_jobs(
    state: &State,
    caller: &Caller,
    cursors: &ListCursors<'_>,
    queue: Option<&str>,
    status: Option<JobStatus>,
    paging: &Paging,
) -> ApiResult<JsonPage> {
    let page = paging.page(cursors)?;
    // No queue can have an invalid name, so the list is empty.
    if queue.is_some_and(|name| ops::job::check_queue(name).is_err()) {
        let (items, next) = (Vec::new(), None);
        return Ok(Json(Page { items, next }));
    }
    let queue = queue.map(str::to_owned);
    let filter = JobFilter { queue, status };
    let store = state.store.clone();
    let read = move |page| -> BoxFuture<'static, store::Result<Vec<store::job::Job>>> {
        let (store, filter) = (store.clone(), filter.clone());
        Box::pin(async move { store.job_list(&filter, page).await })
    };
    let key = |job: &store::job::Job| job.id;
    let convert = |job| convert::job(job, caller.payloads());
    state
        .lists
        .page(page, cursors, RowMaxBytes::JOB, read, key, convert)
        .await
}

/// Enqueues a job; the first job creates its queue. If another job holds the dedup key, that job is returned with status 200.
#[utoipa::path(post, path = "/v1/queues/{queue}/jobs", operation_id = "job_enqueue", tag = "jobs", request_body = NewJob,
    params(("queue" = String, Path)),
    responses((status = 201, body = EnqueuedJob), (status = 200, body = EnqueuedJob), CommonResponses))]
async fn enqueue(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Path(queue): Path<String>,
    headers: HeaderMap,
    Json(new): Json<NewJob>,
) -> ApiResult<(StatusCode, Json<EnqueuedJob>)> {
    let workspace = new.workspace_id;
    let job = convert::new_job("", &queue, new, trace(&headers))?;
    let (quotas, workspaces) = (&state.job_quotas, workspace.as_slice());
    let jobs = vec![job];
    let jobs = ops::job::enqueue_within(&*state.store, quotas, &caller.0, workspaces, jobs).await;
    let jobs = jobs.map_err(|error| ApiError::from(error).strip_path_prefix("/jobs/0"))?;
    let job = jobs.into_iter().next();
    let job = job.ok_or_else(|| ApiError::not_found("job"))?;
    let status = if job.existing {
        StatusCode::OK
    } else {
        StatusCode::CREATED
    };
    Ok((status, Json(convert::enqueued(job))))
}

/// Enqueues jobs, all or none.
#[utoipa::path(post, path = "/v1/queues/{queue}/jobs/batch", operation_id = "job_enqueue_many", tag = "jobs", request_body = NewJobs,
    params(("queue" = String, Path)), responses((status = 201, body = EnqueuedJobs), CommonResponses))]
async fn enqueue_many(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Path(queue): Path<String>,
    headers: HeaderMap,
    BatchJson(new): BatchJson<NewJobs>,
) -> ApiResult<(StatusCode, Json<EnqueuedJobs>)> {
    ops::claim::check_batch(new.jobs.len())?;
    let workspaces = new.jobs.iter().filter_map(|job| job.workspace_id);
    let workspaces: BTreeSet<WorkspaceId> = workspaces.collect();
    let workspaces: Vec<WorkspaceId> = workspaces.into_iter().collect();
    let jobs = new.jobs.into_iter().enumerate();
    let jobs: Vec<store::job::NewJob> = jobs
        .map(|(index, job)| {
            convert::new_job(&format!("/jobs/{index}"), &queue, job, trace(&headers))
        })
        .collect::<ApiResult<_>>()?;
    call_memory::reserve(jobs.len() * ENQUEUED_MAX_BYTES).await?;
    let _turn = state.large_changes.permit(jobs.len()).await;
    let quotas = &state.job_quotas;
    let jobs = ops::job::enqueue_within(&*state.store, quotas, &caller.0, &workspaces, jobs);
    let jobs = jobs.await?;
    let jobs = jobs.into_iter().map(convert::enqueued).collect();
    Ok((StatusCode::CREATED, Json(EnqueuedJobs { jobs })))
}

/// Returns the caller's trace context. An invalid one is ignored, as the W3C recommendation requires.
fn trace(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get("traceparent")?.to_str().ok()?;
    text::check(value, TRACE_CONTEXT_MAX_CHARS).ok()?;
    Some(value)
}

/// Returns a job.
#[utoipa::path(get, path = "/v1/jobs/{job}", operation_id = "job_get", tag = "jobs", params(("job" = i64, Path)),
    responses((status = 200, body = Job), CommonResponses, NotFoundResponse))]
async fn get(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<JobId>,
) -> ApiResult<Json<Job>> {
    call_memory::reserve(3 * PAYLOAD_MAX_BYTES).await?;
    let job = state.store.job_get(id).await?;
    let job = job.filter(|job| caller.may_access_queue(&job.queue));
    let job = job.ok_or_else(|| ApiError::not_found("job"))?;
    Ok(Json(convert::job(job, caller.payloads())))
}

/// Cancels a queued job: its status becomes `failed` with the error `cancelled`. A running job cannot be cancelled.
#[utoipa::path(post, path = "/v1/jobs/{job}/cancel", operation_id = "job_cancel", tag = "jobs", params(("job" = i64, Path)),
    responses((status = 200, body = Job), CommonResponses, NotFoundResponse, ConflictResponse))]
async fn cancel(
    AxumState(state): AxumState<State>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<JobId>,
) -> ApiResult<Json<Job>> {
    call_memory::reserve(3 * PAYLOAD_MAX_BYTES).await?;
    let job = ops::cancel::job(&*state.store, caller.scope(), id).await?;
    Ok(Json(convert::job(job, caller.payloads())))
}
