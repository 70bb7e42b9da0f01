//! What a worker does with its leases: renew them, end them. The claims of nodes are in `nodes`.

use super::nodes::{NodeAnswer, Nodes};
use super::row::{self, JsonIn};
use crate::error::postgres;
use crate::pool;
use crate::row::{micros, time};
use crate::store::{Params, PostgresStore, sql};
use deadpool_postgres::GenericClient;
use leasehold_core::job::{
    Again, JobEnd, JobFinish, JobFinished, JobRef, JobRetry, JobStatus, bounded_wait, jitter,
};
use leasehold_core::lease::bounded;
use leasehold_core::limits::ERROR_MAX_CHARS;
use leasehold_core::text::clip;
use leasehold_core::{JobId, JsonText, Timestamp};
use leasehold_store::job::JobsFinished;
use leasehold_store::{Error, Result};
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use tokio_postgres::Row;

const CONTEXT: &str = "job_finish";

/// Claims sorted by page, as the functions of the schema take them.
struct Pages {
    tokens: Vec<i64>,
    first: Vec<i32>,
    ids: Vec<i64>,
}

impl Pages {
    /// `claims` must be sorted by token.
    fn of(claims: impl Iterator<Item = JobRef>) -> Self {
        let mut pages = Self {
            tokens: Vec::new(),
            first: Vec::new(),
            ids: Vec::new(),
        };
        for claim in claims {
            if pages.tokens.last() != Some(&claim.token) {
                pages.tokens.push(claim.token);
                let first = pages.ids.len() + 1;
                pages.first.push(i32::try_from(first).unwrap_or(i32::MAX));
            }
            pages.ids.push(claim.job.0);
        }
        pages
    }
}

pub(crate) async fn renew(
    store: &PostgresStore,
    worker: &str,
    claims: &[JobRef],
    lease: Duration,
) -> Result<Vec<JobId>> {
    let mut sorted = claims.to_vec();
    sorted.sort_unstable_by_key(|claim| (claim.token, claim.job));
    sorted.dedup();
    let pages = Pages::of(sorted.into_iter());
    let rows = store
        .many(
            "job_renew",
            sql!("job/renew"),
            &[
                &store.given_now(),
                &worker,
                &pages.tokens,
                &pages.first,
                &pages.ids,
                &micros(bounded(lease)),
            ],
        )
        .await?;
    Ok(rows.iter().map(|row| JobId(row.get(0))).collect())
}

/// How a claim shall end, decided before it is written.
#[derive(Clone)]
pub(crate) struct Verdict<'a> {
    pub(crate) claim: JobRef,
    /// Its position in the call.
    pub(crate) asked: usize,
    pub(crate) becomes: JobStatus,
    pub(crate) result: Option<&'a JsonText>,
    pub(crate) error: Option<String>,
    wait: Duration,
    uncounted: bool,
}

impl<'a> Verdict<'a> {
    pub(super) fn new(
        asked: usize,
        finish: &'a JobFinish,
        policies: &HashMap<JobRef, Policy>,
    ) -> Self {
        let mut verdict = Self {
            claim: finish.claim,
            asked,
            becomes: JobStatus::Queued,
            result: None,
            error: None,
            wait: Duration::ZERO,
            uncounted: true,
        };
        match &finish.end {
            JobEnd::Completed { result } => {
                verdict.becomes = JobStatus::Completed;
                verdict.result = result.as_ref();
            }
            JobEnd::Failed { error, again } => {
                verdict.uncounted = false;
                verdict.error = Some(clip(error, ERROR_MAX_CHARS));
                let policy = policies.get(&finish.claim);
                match policy.and_then(|policy| policy.wait(finish.claim, *again)) {
                    Some(wait) => verdict.wait = wait,
                    None => verdict.becomes = JobStatus::Failed,
                }
            }
            JobEnd::Snoozed(wait) => verdict.wait = *wait,
            JobEnd::GivenBack => {}
        }
        verdict
    }
}

/// How a running job is tried again.
pub(super) struct Policy {
    attempt: u32,
    retry: JobRetry,
}

impl Policy {
    /// How long a failed job waits for its next attempt; none if there is none.
    fn wait(&self, claim: JobRef, again: Again) -> Option<Duration> {
        let by_policy = self
            .retry
            .after_failure(self.attempt, jitter(claim.job, claim.token))?;
        match again {
            Again::Policy => Some(by_policy),
            Again::After(wait) => Some(wait),
            Again::Never => None,
        }
    }
}

async fn policies(
    client: &impl GenericClient,
    finishes: &[JobFinish],
) -> Result<HashMap<JobRef, Policy>> {
    let (ids, tokens): (Vec<i64>, Vec<i64>) = finishes
        .iter()
        .filter(
            |finish| matches!(&finish.end, JobEnd::Failed { again, .. } if *again != Again::Never),
        )
        .map(|finish| (finish.claim.job.0, finish.claim.token))
        .unzip();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = query(client, sql!("job/policy"), &[&ids, &tokens]).await?;
    let policy = |row: &Row| {
        let claim = JobRef {
            job: JobId(row.get("id")),
            token: row.get("token"),
        };
        let policy = Policy {
            attempt: row::count(row.get("attempt")),
            retry: row::retry(row),
        };
        (claim, policy)
    };
    Ok(rows.iter().map(policy).collect())
}

async fn query(client: &impl GenericClient, sql: &str, params: &Params<'_>) -> Result<Vec<Row>> {
    let statement = client
        .prepare_cached(sql)
        .await
        .map_err(postgres(CONTEXT))?;
    let rows = client.query(&statement, params).await;
    rows.map_err(postgres(CONTEXT))
}

pub(crate) async fn finish(
    store: &PostgresStore,
    worker: &str,
    finishes: &[JobFinish],
) -> Result<JobsFinished> {
    let mut client = pool::take(&store.pool, CONTEXT).await?;
    let verdicts = verdicts(&client, finishes).await?;
    let answers = end(&client, store.given_now(), worker, &verdicts, false).await?;
    let mut call = Call::new(finishes, &verdicts);
    let claims = call.keep(store, answers);
    let nodes = Nodes {
        store,
        worker,
        finishes,
    };
    let failure = call.keep_nodes(nodes.finish(&mut client, claims).await);
    call.finished.with_failure(failure)
}

/// A call that ends claims.
struct Call<'a> {
    finishes: &'a [JobFinish],
    verdicts: HashMap<JobRef, &'a Verdict<'a>>,
    finished: JobsFinished,
}

impl<'a> Call<'a> {
    fn new(finishes: &'a [JobFinish], verdicts: &'a [Verdict<'a>]) -> Self {
        Self {
            finishes,
            verdicts: verdicts.iter().map(|v| (v.claim, v)).collect(),
            finished: JobsFinished {
                jobs: vec![JobFinished::LeaseLost; finishes.len()],
                ..JobsFinished::default()
            },
        }
    }

    /// Keeps answers that are committed and wakes whoever waits for that. Returns the claims of nodes, in the order asked.
    fn keep(&mut self, store: &PostgresStore, answers: Vec<Answer>) -> Vec<&'a Verdict<'a>> {
        let (mut queued, mut nodes) = (false, Vec::new());
        for (claim, answer) in answers {
            let Some(&verdict) = self.verdicts.get(&claim) else {
                continue;
            };
            match answer {
                Some(finished) => {
                    queued |= matches!(finished, JobFinished::Queued { .. });
                    self.finished.jobs[verdict.asked] = finished;
                }
                None => nodes.push(verdict),
            }
        }
        store.job_wakes.finished(queued);
        nodes.sort_unstable_by_key(|verdict| verdict.asked);
        nodes
    }

    /// Keeps what became of the claims of nodes, and returns the first failure.
    fn keep_nodes(&mut self, answers: Vec<NodeAnswer<'a>>) -> Option<Error> {
        let (mut failure, mut unwritten) = (None, HashSet::new());
        for (verdict, answer) in answers {
            match answer {
                Some(Ok(node)) => {
                    self.finished.ended.extend(node.ended);
                    if let Some((_, Some(finished))) = node.job {
                        self.finished.jobs[verdict.asked] = finished;
                    }
                }
                Some(Err(error)) => {
                    failure.get_or_insert(error);
                    unwritten.insert(verdict.claim);
                }
                None => {
                    unwritten.insert(verdict.claim);
                }
            }
        }
        // Also where the call asks for such a claim a second time.
        for (finish, answer) in self.finishes.iter().zip(&mut self.finished.jobs) {
            if unwritten.contains(&finish.claim) {
                *answer = JobFinished::NotWritten;
            }
        }
        failure
    }
}

/// What shall become of each claim, sorted by page; of two for one claim the first.
async fn verdicts<'a>(
    client: &impl GenericClient,
    finishes: &'a [JobFinish],
) -> Result<Vec<Verdict<'a>>> {
    let policies = policies(client, finishes).await?;
    let mut verdicts: Vec<Verdict<'_>> = finishes
        .iter()
        .enumerate()
        .map(|(asked, finish)| Verdict::new(asked, finish, &policies))
        .collect();
    verdicts.sort_unstable_by_key(|v| (v.claim.token, v.claim.job, v.asked));
    verdicts.dedup_by_key(|v| v.claim);
    Ok(verdicts)
}

/// What became of a claim; none if it is that of a node, whose graph has to be brought on with it.
pub(crate) type Answer = (JobRef, Option<JobFinished>);

/// Ends those of these claims that the worker holds, and says what became of them. `nodes`: the caller brings their graphs on.
pub(crate) async fn end(
    client: &impl GenericClient,
    now: Option<Timestamp>,
    worker: &str,
    verdicts: &[Verdict<'_>],
    nodes: bool,
) -> Result<Vec<Answer>> {
    let pages = Pages::of(verdicts.iter().map(|v| v.claim));
    let plain = verdicts
        .iter()
        .all(|v| v.becomes == JobStatus::Completed && v.result.is_none());
    // Of plain ones nothing more is said.
    let told = if plain { &[] } else { verdicts };
    let becomes: Vec<&str> = told.iter().map(|v| v.becomes.as_str()).collect();
    let results: Vec<Option<JsonIn<'_>>> = told.iter().map(|v| v.result.map(JsonIn)).collect();
    let errors: Vec<Option<&str>> = told.iter().map(|v| v.error.as_deref()).collect();
    let waits: Vec<i64> = told.iter().map(|v| micros(bounded_wait(v.wait))).collect();
    let uncounted: Vec<bool> = told.iter().map(|v| v.uncounted).collect();
    let params: &Params<'_> = &[
        &now,
        &worker,
        &pages.tokens,
        &pages.first,
        &pages.ids,
        &plain,
        &becomes,
        &results,
        &errors,
        &waits,
        &uncounted,
        &nodes,
    ];
    let rows = query(client, sql!("job/finish"), params).await?;
    rows.iter()
        .map(|row| {
            let claim = JobRef {
                job: JobId(row.get(0)),
                token: row.get(1),
            };
            let finished = match row.get::<_, Option<&str>>(2) {
                None | Some("completed") => Some(JobFinished::Completed),
                Some("failed") => Some(JobFinished::Failed),
                Some("of_graph") => None,
                Some(_) => Some(JobFinished::Queued {
                    run_at: time::<Timestamp>(row, "run_at")?,
                }),
            };
            Ok((claim, finished))
        })
        .collect()
}
