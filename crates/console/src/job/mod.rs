//! `leasehold job`: enqueueing and looking at jobs, and working on them with any program.

mod enqueue;
mod work;

use crate::command::Act;
use crate::input;
use crate::listing::Listing;
use crate::output::clean;
use crate::scope::WorkspaceFlag;
use crate::session::Session;
use crate::shown;
use crate::trouble::{OrMissing, Outcome};
use clap::Subcommand;
use enqueue::EnqueueJob;
use leasehold_client::api::job::Job;
use leasehold_core::{JobId, JobStatus};
use work::Work;

/// What to do with jobs.
#[derive(Subcommand, Clone, Debug)]
pub enum JobAction {
    /// Puts a job into a queue; with --from, many.
    Enqueue(EnqueueJob),
    /// Shows a job.
    Get {
        /// Its id.
        id: JobId,
    },
    /// Lists jobs, newest first.
    List {
        /// Only those of this queue.
        queue: Option<String>,
        /// Only those in this status.
        #[arg(long, value_parser = input::job_status(), ignore_case = true)]
        status: Option<JobStatus>,
        #[command(flatten)]
        listing: Listing,
    },
    /// Cancels a job that no worker has.
    Cancel {
        /// Its id.
        id: JobId,
    },
    /// Works on the jobs of a queue with a program of yours: a worker in any language.
    ///
    /// For each job the program is started anew: the payload is its standard input, what it prints is the result (as JSON if it is JSON, else as text), an exit
    /// code other than 0 fails the attempt with the last lines of its standard error. LEASEHOLD_JOB_ID, LEASEHOLD_JOB_KIND, LEASEHOLD_JOB_QUEUE and LEASEHOLD_JOB_ATTEMPT
    /// tell it more, TRACEPARENT in which trace it is. The lease is kept alive meanwhile; a program whose lease is lost is killed.
    Work(Work),
}

const LOOK: &str = "job list";

impl Act for JobAction {
    async fn act(self, session: &Session, _: &WorkspaceFlag) -> Outcome {
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
                print(session, &job.or_missing(|| format!("job {id}"), LOOK)?)
            }
            Self::Cancel { id } => {
                let job = session.client.job_cancel(id).await;
                let job = job.or_missing(|| format!("job {id}"), LOOK)?;
                if session.out.is_json() {
                    return Ok(session.out.json(&job)?);
                }
                Ok(session.out.line(format!("job {id} is cancelled"))?)
            }
        }
    }
}

async fn list(
    session: &Session,
    queue: Option<&str>,
    status: Option<JobStatus>,
    listing: Listing,
) -> Outcome {
    let headings = [
        "ID",
        "QUEUE",
        "KIND",
        "STATUS",
        "TRIES",
        "ENQUEUED",
        "LAST ERROR",
    ];
    let none = "there are no such jobs; `leasehold job enqueue QUEUE KIND` makes one";
    let list = match queue {
        Some(queue) => session.client.job_list(queue, status),
        None => session.client.job_list_all(status),
    };
    let row = |job: &Job| {
        vec![
            job.id.to_string(),
            clean(&job.queue),
            clean(&job.kind),
            shown::job_status(&session.out, job.status),
            format!("{}/{}", job.attempts, job.max_attempts),
            shown::age(job.created_at, jiff::Timestamp::now()),
            shown::cut(job.last_error.as_deref().unwrap_or_default()),
        ]
    };
    let rows = async |items: &[Job]| Ok(items.iter().map(row).collect());
    listing.print(session, list, &headings, none, rows).await
}

fn print(session: &Session, job: &Job) -> Outcome {
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
        ("status", shown::job_status(out, job.status)),
        ("error", text(&job.last_error)),
        (
            "execution",
            job.execution.map(|id| id.to_string()).unwrap_or_default(),
        ),
        ("priority", job.priority.to_string()),
        ("tries", format!("{} of {}", job.attempts, job.max_attempts)),
        (
            "timeout",
            job.timeout_ms.map(shown::length).unwrap_or_default(),
        ),
        ("key", text(&job.dedup_key)),
        ("worker", text(&job.claimed_by)),
        ("lease until", shown::maybe(job.lease_expires_at)),
        ("enqueued", shown::moment(job.created_at)),
        (
            "not before",
            if job.run_at > job.created_at {
                shown::moment(job.run_at)
            } else {
                String::new()
            },
        ),
        ("ended", shown::maybe(job.finished_at)),
        ("payload", clean(job.payload.as_str())),
        ("progress", json(&job.progress)),
        ("result", json(&job.result)),
    ])?)
}
