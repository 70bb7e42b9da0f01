//! Jobs: putting them into queues, showing and cancelling them. What workers do with them is in `claims.rs`.

use super::shown_jobs as shown;
use crate::access::{Access, Caller};
use crate::body::{Batch, Json};
use crate::lists::Listed;
use crate::openapi::{Common, Conflict, Unknown};
use crate::params::{Paging, Path, Query, paged};
use crate::refusal::{Outcome, Refusal};
use crate::route::Routes;
use crate::state::State;
use axum::Extension;
use axum::extract::State as Reached;
use axum::http::{HeaderMap, StatusCode};
use futures::future::BoxFuture;
use leasehold_api::Page;
use leasehold_api::job::{EnqueuedJob, EnqueuedJobs, Job, NewJob, NewJobs};
use leasehold_core::limits::TRACE_CONTEXT_MAX_CHARS;
use leasehold_core::{JobId, JobStatus, text};
use leasehold_ops as ops;
use leasehold_store as store;
use leasehold_store::job::JobFilter;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .add(routes!(list_of_queue), Access::Queue)
        .add(routes!(enqueue), Access::Queue.starts_trace())
        .add(routes!(enqueue_many), Access::Queue.starts_trace())
        .add(routes!(list), Access::Admin)
        .add(routes!(get), Access::Jobs)
        .add(routes!(cancel), Access::Jobs)
}

/// Which jobs of a queue.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct OfQueue {
    /// In this status.
    #[param(value_type = Option<leasehold_api::job::JobStatusName>)]
    status: Option<JobStatus>,
    /// `next` of the page before.
    #[param(value_type = Option<i64>)]
    after: Option<String>,
    /// How many rows at most; 100 unless said.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// Which jobs.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct OfAll {
    /// Of this queue.
    queue: Option<String>,
    /// In this status.
    #[param(value_type = Option<leasehold_api::job::JobStatusName>)]
    status: Option<JobStatus>,
    /// `next` of the page before.
    #[param(value_type = Option<i64>)]
    after: Option<String>,
    /// How many rows at most; 100 unless said.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// Jobs of a queue, newest first.
#[utoipa::path(get, path = "/v1/queues/{queue}/jobs", operation_id = "job_list_of_queue", tag = "jobs",
    params(("queue" = String, Path), OfQueue), responses((status = 200, body = Page<Job>), Common))]
async fn list_of_queue(
    Reached(state): Reached<State>,
    Path(queue): Path<String>,
    Query(asked): Query<OfQueue>,
) -> Outcome<Listed> {
    let paging = Paging {
        after: asked.after,
        limit: asked.limit,
    };
    listed(&state, Some(queue), asked.status, &paging).await
}

/// Jobs of all queues, newest first.
#[utoipa::path(get, path = "/v1/jobs", operation_id = "job_list", tag = "jobs", params(OfAll),
    responses((status = 200, body = Page<Job>), Common))]
async fn list(Reached(state): Reached<State>, Query(asked): Query<OfAll>) -> Outcome<Listed> {
    let paging = Paging {
        after: asked.after,
        limit: asked.limit,
    };
    listed(&state, asked.queue, asked.status, &paging).await
}

async fn listed(
    state: &State,
    queue: Option<String>,
    status: Option<JobStatus>,
    paging: &Paging,
) -> Outcome<Listed> {
    let page = paged(paging.after.as_deref(), paging.limit)?;
    // No queue can have such a name, so no job is in it.
    if queue
        .as_deref()
        .is_some_and(|name| ops::job::check_queue(name).is_err())
    {
        let (items, next) = (Vec::new(), None);
        return Ok(Json(Page { items, next }));
    }
    let filter = JobFilter { queue, status };
    let store = state.store.clone();
    let read = move |page| -> BoxFuture<'static, store::Result<Vec<store::job::Job>>> {
        let (store, filter) = (store.clone(), filter.clone());
        Box::pin(async move { store.job_list(&filter, page).await })
    };
    let key = |job: &store::job::Job| job.id;
    state.lists.page(page, read, key, shown::job).await
}

/// Puts a job into a queue, which is made by its first job. If another job holds its dedup key, that one is answered with 200.
#[utoipa::path(post, path = "/v1/queues/{queue}/jobs", operation_id = "job_enqueue", tag = "jobs", request_body = NewJob,
    params(("queue" = String, Path)),
    responses((status = 201, body = EnqueuedJob), (status = 200, body = EnqueuedJob), Common))]
async fn enqueue(
    Reached(state): Reached<State>,
    Path(queue): Path<String>,
    headers: HeaderMap,
    Json(new): Json<NewJob>,
) -> Outcome<(StatusCode, Json<EnqueuedJob>)> {
    let job = shown::new_job("", &queue, new, trace(&headers))?;
    let jobs = ops::job::enqueue(&*state.store, &[job]).await;
    let jobs = jobs.map_err(|error| Refusal::from(error).within("/jobs/0"))?;
    let job = jobs.into_iter().next().ok_or_else(Refusal::not_found)?;
    let status = if job.existing {
        StatusCode::OK
    } else {
        StatusCode::CREATED
    };
    Ok((status, Json(shown::enqueued(job))))
}

/// Puts jobs into a queue, all or none.
#[utoipa::path(post, path = "/v1/queues/{queue}/jobs/batch", operation_id = "job_enqueue_many", tag = "jobs", request_body = NewJobs,
    params(("queue" = String, Path)), responses((status = 201, body = EnqueuedJobs), Common))]
async fn enqueue_many(
    Reached(state): Reached<State>,
    Path(queue): Path<String>,
    headers: HeaderMap,
    Batch(new): Batch<NewJobs>,
) -> Outcome<(StatusCode, Json<EnqueuedJobs>)> {
    ops::claim::check_batch(new.jobs.len())?;
    let jobs = new.jobs.into_iter().enumerate();
    let jobs: Vec<store::job::NewJob> = jobs
        .map(|(index, job)| shown::new_job(&format!("/jobs/{index}"), &queue, job, trace(&headers)))
        .collect::<Outcome<_>>()?;
    let jobs = ops::job::enqueue(&*state.store, &jobs).await?;
    let jobs = jobs.into_iter().map(shown::enqueued).collect();
    Ok((StatusCode::CREATED, Json(EnqueuedJobs { jobs })))
}

/// The caller's trace context. One that cannot be one is left out, as W3C's recommendation says.
fn trace(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get("traceparent")?.to_str().ok()?;
    text::check(value, TRACE_CONTEXT_MAX_CHARS).ok()?;
    Some(value)
}

/// A job.
#[utoipa::path(get, path = "/v1/jobs/{job}", operation_id = "job_get", tag = "jobs", params(("job" = i64, Path)),
    responses((status = 200, body = Job), Common, Unknown))]
async fn get(
    Reached(state): Reached<State>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<JobId>,
) -> Outcome<Json<Job>> {
    let job = state.store.job_get(id).await?;
    let job = job.filter(|job| caller.works_for(&job.queue));
    let job = job.ok_or_else(Refusal::not_found)?;
    Ok(Json(shown::job(job)))
}

/// Cancels a job that no worker has: it is failed, with the error `cancelled`.
#[utoipa::path(post, path = "/v1/jobs/{job}/cancel", operation_id = "job_cancel", tag = "jobs", params(("job" = i64, Path)),
    responses((status = 200, body = Job), Common, Unknown, Conflict))]
async fn cancel(
    Reached(state): Reached<State>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<JobId>,
) -> Outcome<Json<Job>> {
    let job = ops::cancel::job(&*state.store, &caller.0.scope, id).await?;
    Ok(Json(shown::job(job)))
}
