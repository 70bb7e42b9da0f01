//! `leasehold job`: enqueues, shows and cancels jobs, and runs a worker with any program.

mod enqueue;
mod work;

use crate::command::Execute;
use crate::command_error::{CommandResult, OrNotFound};
use crate::display;
use crate::input;
use crate::listing::Listing;
use crate::output::clean;
use crate::scope::WorkspaceFlag;
use crate::session::Session;
use clap::Subcommand;
use enqueue::EnqueueJob;
use leasehold_client::api::job::Job;
use leasehold_core::{JobId, JobStatus};
use work::WorkArgs;

/// Subcommands of `leasehold job`.
#[derive(Subcommand, Clone, Debug)]
pub enum JobAction {
    /// Enqueue a job; with --from, many jobs.
    Enqueue(EnqueueJob),
    /// Show a job.
    Get {
        /// Job id.
        id: JobId,
    },
    /// List jobs, newest first.
    List {
        /// Only jobs of this queue.
        queue: Option<String>,
        /// Only jobs in this status.
        #[arg(long, value_parser = input::job_status(), ignore_case = true)]
        status: Option<JobStatus>,
        #[command(flatten)]
        listing: Listing,
    },
    /// Cancel a job that no worker has claimed.
    Cancel {
        /// Job id.
        id: JobId,
    },
    /// Run a worker that starts a program for each job of a queue: a worker in any language.
    ///
    /// The program reads the payload from standard input and prints the result to standard output (stored as JSON if it is valid JSON, else as a string). An exit
    /// code other than 0 fails the attempt; the end of standard error becomes the error message. The variables LEASEHOLD_JOB_ID, LEASEHOLD_JOB_KIND, LEASEHOLD_JOB_QUEUE,
    /// LEASEHOLD_JOB_ATTEMPT and TRACEPARENT describe the job. The worker renews the lease while the program runs, and kills the program if the lease is lost.
    Work(WorkArgs),
}

const LIST_COMMAND: &str = "job list";

impl Execute for JobAction {
    async fn execute(self, session: &Session, _: &WorkspaceFlag) -> CommandResult {
        match self {
            Self::Enqueue(enqueue) => enqueue.run(session).await,
            Self::Work(work) => work.run(session).await,
            Self::List {
                queue,
                status,
                listing,
            } => list(session, queue.as_deref(), status, listing).await,
            Self::Get { id } => {
                let job = session.client.job_get(id).await;
                print(
                    session,
                    &job.or_not_found(|| format!("job {id}"), LIST_COMMAND)?,
                )
            }
            Self::Cancel { id } => {
                let job = session.client.job_cancel(id).await;
                let job = job.or_not_found(|| format!("job {id}"), LIST_COMMAND)?;
                if session.out.is_json() {
                    return Ok(session.out.json(&job)?);
                }
                Ok(session.out.line(format!("cancelled job {id}"))?)
            }
        }
    }
}

async fn list(
    session: &Session,
    queue: Option<&str>,
    status: Option<JobStatus>,
    listing: Listing,
) -> CommandResult {
    let headings = [
        "ID",
        "QUEUE",
        "KIND",
        "STATUS",
        "ATTEMPTS",
        "ENQUEUED",
        "LAST ERROR",
    ];
    let none = "no matching jobs; enqueue one with `leasehold job enqueue QUEUE KIND`";
    let list = match queue {
        Some(queue) => session.client.job_list(queue, status),
        None => session.client.job_list_all(status),
    };
    let row = |job: &Job| {
        vec![
            job.id.to_string(),
            clean(&job.queue),
            clean(&job.kind),
            display::job_status(&session.out, &job.status),
            format!("{}/{}", job.attempts, job.max_attempts),
            display::age(job.created_at, jiff::Timestamp::now()),
            display::truncate(job.last_error.as_deref().unwrap_or_default()),
        ]
    };
    let rows = async |items: &[Job]| Ok(items.iter().map(row).collect());
    listing.print(session, list, &headings, none, rows).await
}

fn print(session: &Session, job: &Job) -> CommandResult {
    let out = &session.out;
    if out.is_json() {
        return Ok(out.json(job)?);
    }
    let text = |text: &Option<String>| clean(text.as_deref().unwrap_or_default());
    let json = |json: &Option<leasehold_core::JsonText>| {
        json.as_ref()
            .map(|json| clean(json.as_str()))
            .unwrap_or_default()
    };
    Ok(out.fields(vec![
        ("job", job.id.to_string()),
        ("queue", clean(&job.queue)),
        ("kind", clean(&job.kind)),
        ("status", display::job_status(out, &job.status)),
        ("error", text(&job.last_error)),
        (
            "execution",
            job.execution.map(|id| id.to_string()).unwrap_or_default(),
        ),
        ("priority", job.priority.to_string()),
        (
            "attempts",
            format!("{} of {}", job.attempts, job.max_attempts),
        ),
        (
            "timeout",
            job.timeout_ms.map(display::duration).unwrap_or_default(),
        ),
        ("key", text(&job.dedup_key)),
        ("worker", text(&job.claimed_by)),
        (
            "lease expires",
            display::optional_timestamp(job.lease_expires_at),
        ),
        ("enqueued", display::timestamp(job.created_at)),
        (
            "not before",
            if job.run_at > job.created_at {
                display::timestamp(job.run_at)
            } else {
                String::new()
            },
        ),
        ("finished", display::optional_timestamp(job.finished_at)),
        ("payload", clean(job.payload.as_str())),
        ("progress", json(&job.progress)),
        ("result", json(&job.result)),
    ])?)
}
