//! Renews leases and finishes claimed jobs. `nodes` finishes jobs that are nodes of a graph.

use super::nodes::{NodeFinisher, NodeResult};
use super::row::{self, JsonIn};
use crate::error;
use crate::lock_wait::BRIEF_PAUSES;
use crate::pool;
use crate::row::{micros, time};
use crate::session::Session;
use crate::store::{Params, PostgresStore, sql};
use leasehold_core::job::{
    JobEnd, JobFinish, JobFinished, JobRef, JobRetry, JobStatus, JobsRenewed, RetryMode,
    bounded_wait, jitter,
};
use leasehold_core::lease::bounded;
use leasehold_core::limits::ERROR_MAX_CHARS;
use leasehold_core::text::clip;
use leasehold_core::{JobId, JsonText, Timestamp};
use leasehold_store::job::JobsFinished;
use leasehold_store::{Error, Result};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use tokio::time::sleep;
use tokio_postgres::Row;

const CONTEXT: &str = "job_finish";

/// Claims sorted by page of leases, in the form that the SQL functions take.
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
) -> Result<JobsRenewed> {
    const CONTEXT: &str = "job_renew";
    let mut sorted = claims.to_vec();
    sorted.sort_unstable_by_key(|claim| (claim.token, claim.job));
    sorted.dedup();
    let pages = Pages::of(sorted.iter().copied());
    let rows = store
        .heartbeat(
            CONTEXT,
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
    let renewed: Vec<JobId> = rows.iter().map(|row| JobId(row.get(0))).collect();
    let known: HashSet<JobId> = renewed.iter().copied().collect();
    sorted.retain(|claim| !known.contains(&claim.job));
    let busy = held(store, CONTEXT, worker, &sorted).await?;
    Ok(JobsRenewed {
        renewed,
        busy: busy.into_iter().map(|claim| claim.job).collect(),
    })
}

/// Returns which of these claims, which a statement skipped, the worker still holds: their pages were locked.
async fn held(
    store: &PostgresStore,
    context: &'static str,
    worker: &str,
    skipped: &[JobRef],
) -> Result<HashSet<JobRef>> {
    if skipped.is_empty() {
        return Ok(HashSet::new());
    }
    let ids: Vec<i64> = skipped.iter().map(|claim| claim.job.0).collect();
    let tokens: Vec<i64> = skipped.iter().map(|claim| claim.token).collect();
    let params: &Params<'_> = &[&store.given_now(), &worker, &ids, &tokens];
    let rows = store.heartbeat(context, sql!("job/held"), params).await?;
    let claim = |row: &Row| JobRef {
        job: JobId(row.get("id")),
        token: row.get("token"),
    };
    Ok(rows.iter().map(claim).collect())
}

/// How a claimed job ends, decided before it is written.
#[derive(Clone)]
pub(crate) struct FinishDecision<'a> {
    pub(crate) claim: JobRef,
    /// The index in the call.
    pub(crate) index: usize,
    pub(crate) becomes: JobStatus,
    pub(crate) result: Option<&'a JsonText>,
    pub(crate) error: Option<String>,
    wait: Duration,
    uncounted: bool,
}

impl<'a> FinishDecision<'a> {
    pub(super) fn new(
        index: usize,
        finish: &'a JobFinish,
        policies: &HashMap<JobRef, Policy>,
    ) -> Self {
        let mut decision = Self {
            claim: finish.claim,
            index,
            becomes: JobStatus::Queued,
            result: None,
            error: None,
            wait: Duration::ZERO,
            uncounted: true,
        };
        match &finish.end {
            JobEnd::Completed { result } => {
                decision.becomes = JobStatus::Completed;
                decision.result = result.as_ref();
            }
            JobEnd::Failed { error, retry_mode } => {
                decision.uncounted = false;
                decision.error = Some(clip(error, ERROR_MAX_CHARS));
                let policy = policies.get(&finish.claim);
                match policy.and_then(|policy| policy.wait(finish.claim, *retry_mode)) {
                    Some(wait) => decision.wait = wait,
                    None => decision.becomes = JobStatus::Failed,
                }
            }
            JobEnd::Snoozed(wait) => decision.wait = *wait,
            JobEnd::Returned => {}
        }
        decision
    }
}

/// The retry policy of a running job and its current attempt.
pub(super) struct Policy {
    attempt: u32,
    retry: JobRetry,
}

impl Policy {
    /// Returns how long a failed job waits for its next attempt; none if it has no attempt left.
    fn wait(&self, claim: JobRef, retry_mode: RetryMode) -> Option<Duration> {
        let by_policy = self
            .retry
            .after_failure(self.attempt, jitter(claim.job, claim.token))?;
        match retry_mode {
            RetryMode::Policy => Some(by_policy),
            RetryMode::After(wait) => Some(wait),
            RetryMode::Never => None,
        }
    }
}

async fn policies(session: Session<'_>, finishes: &[JobFinish]) -> Result<HashMap<JobRef, Policy>> {
    let (ids, tokens): (Vec<i64>, Vec<i64>) = finishes
        .iter()
        .filter(
            |finish| matches!(&finish.end, JobEnd::Failed { retry_mode, .. } if *retry_mode != RetryMode::Never),
        )
        .map(|finish| (finish.claim.job.0, finish.claim.token))
        .unzip();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = session.many(sql!("job/policy"), &[&ids, &tokens]).await?;
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

pub(crate) async fn finish(
    store: &PostgresStore,
    worker: &str,
    finishes: &[JobFinish],
) -> Result<JobsFinished> {
    let mut client = pool::take(&store.pool, CONTEXT).await?;
    let decisions = decide(client.session(), finishes).await?;
    let now = store.given_now();
    let mut ended = ClaimsEnded::default();
    ended
        .end_each(
            client.session(),
            now,
            worker,
            &decisions,
            client.job_xid_offset(),
        )
        .await?;
    let mut call = FinishCall::new(finishes, &decisions);
    let mut busy = held(store, CONTEXT, worker, &call.skipped(&ended.results)).await?;
    for pause in BRIEF_PAUSES {
        // Those that were waited for are not tried again: that would delay the others.
        let is_skipped = |claim| busy.contains(claim) && !ended.locked.contains(claim);
        let again = decisions.iter().filter(|d| is_skipped(&d.claim));
        let again: Vec<FinishDecision<'_>> = again.cloned().collect();
        if again.is_empty() || ended.failure.is_some() {
            break;
        }
        sleep(pause).await;
        ended
            .end_each(
                client.session(),
                now,
                worker,
                &again,
                client.job_xid_offset(),
            )
            .await?;
        busy = held(store, CONTEXT, worker, &call.skipped(&ended.results)).await?;
    }
    let is_busy = || (!busy.is_empty()).then(|| error::busy(CONTEXT));
    let failure = ended.failure.take().or_else(is_busy);
    let node_claims = call.add(store, ended.results);
    let finisher = NodeFinisher {
        store,
        worker,
        finishes,
    };
    let node_failure = call.add_nodes(finisher.finish(&mut client, node_claims).await, busy);
    call.finished.with_failure(failure.or(node_failure))
}

/// What one call has ended without the graphs of nodes.
#[derive(Default)]
struct ClaimsEnded {
    results: Vec<FinishResult>,
    /// Claims that were not ended, because a wait for a locked row of theirs timed out.
    locked: HashSet<JobRef>,
    /// Why the others were not ended.
    failure: Option<Error>,
}

impl ClaimsEnded {
    /// Ends claims like [`end`]. If a wait for a lock times out, ends those without locked rows. If it is not known which these are, ends the claims in two
    /// halves, and so on, so that a locked row concerns one claim only.
    async fn end_each(
        &mut self,
        session: Session<'_>,
        now: Option<Timestamp>,
        worker: &str,
        decisions: &[FinishDecision<'_>],
        job_xid_offset: i64,
    ) -> Result<()> {
        let mut parts = vec![Cow::Borrowed(decisions)];
        while let Some(part) = parts.pop() {
            match end(session, now, worker, &part, false, job_xid_offset).await {
                Ok(ended) => self.results.extend(ended),
                Err(error) if !error::is_lock_timeout(&error) => {
                    if self.results.is_empty() {
                        return Err(error);
                    }
                    self.failure = Some(error);
                    return Ok(());
                }
                Err(_) => {
                    let locked = locked(session, &part).await?;
                    let (mut busy, mut free): (Vec<_>, Vec<_>) = part
                        .into_owned()
                        .into_iter()
                        .partition(|d| locked.contains(&d.claim.job));
                    if busy.is_empty() && free.len() > 1 {
                        parts.push(free.split_off(free.len() / 2).into());
                    } else if busy.is_empty() {
                        busy.append(&mut free);
                    }
                    self.locked.extend(busy.iter().map(|d| d.claim));
                    if !free.is_empty() {
                        parts.push(free.into());
                    }
                }
            }
        }
        Ok(())
    }
}

/// Returns those of the jobs that have locked rows.
async fn locked(session: Session<'_>, decisions: &[FinishDecision<'_>]) -> Result<HashSet<JobId>> {
    let jobs: Vec<i64> = decisions.iter().map(|d| d.claim.job.0).collect();
    let rows = session.many(sql!("job/locked"), &[&jobs]).await?;
    Ok(rows.iter().map(|row| JobId(row.get("id"))).collect())
}

/// The state of one `job_finish` call.
struct FinishCall<'a> {
    finishes: &'a [JobFinish],
    decisions: HashMap<JobRef, &'a FinishDecision<'a>>,
    finished: JobsFinished,
}

impl<'a> FinishCall<'a> {
    fn new(finishes: &'a [JobFinish], decisions: &'a [FinishDecision<'a>]) -> Self {
        Self {
            finishes,
            decisions: decisions.iter().map(|d| (d.claim, d)).collect(),
            finished: JobsFinished {
                jobs: vec![JobFinished::LeaseLost; finishes.len()],
                ..JobsFinished::default()
            },
        }
    }

    /// Returns the claims without a result: lost, or skipped because their rows are locked.
    fn skipped(&self, results: &[FinishResult]) -> Vec<JobRef> {
        let known: HashSet<JobRef> = results.iter().map(|(claim, _)| *claim).collect();
        let claims = self.decisions.keys().copied();
        claims.filter(|claim| !known.contains(claim)).collect()
    }

    /// Adds committed results and wakes waiting workers. Returns the claims of nodes, in the order of the call.
    fn add(
        &mut self,
        store: &PostgresStore,
        results: Vec<FinishResult>,
    ) -> Vec<&'a FinishDecision<'a>> {
        let (mut queued, mut nodes) = (false, Vec::new());
        for (claim, result) in results {
            let Some(&decision) = self.decisions.get(&claim) else {
                continue;
            };
            match result {
                Some(finished) => {
                    queued |= matches!(finished, JobFinished::Queued { .. });
                    self.finished.jobs[decision.index] = finished;
                }
                None => nodes.push(decision),
            }
        }
        store.job_notifier.finished(queued);
        nodes.sort_unstable_by_key(|decision| decision.index);
        nodes
    }

    /// Adds the results of claims of nodes, and returns the first failure. `unwritten`: further claims that are held but were not written.
    fn add_nodes(
        &mut self,
        results: Vec<NodeResult<'a>>,
        mut unwritten: HashSet<JobRef>,
    ) -> Option<Error> {
        let mut failure = None;
        for (decision, result) in results {
            match result {
                Some(Ok(node)) => {
                    self.finished.ended.extend(node.ended);
                    if let Some((_, Some(finished))) = node.job {
                        self.finished.jobs[decision.index] = finished;
                    }
                }
                Some(Err(error)) => {
                    failure.get_or_insert(error);
                    unwritten.insert(decision.claim);
                }
                None => {
                    unwritten.insert(decision.claim);
                }
            }
        }
        // The call may contain such a claim a second time.
        for (finish, result) in self.finishes.iter().zip(&mut self.finished.jobs) {
            if unwritten.contains(&finish.claim) {
                *result = JobFinished::NotWritten;
            }
        }
        failure
    }
}

/// Decides how each claim ends. Sorted by page; the first entry for a claim counts.
async fn decide<'a>(
    session: Session<'_>,
    finishes: &'a [JobFinish],
) -> Result<Vec<FinishDecision<'a>>> {
    let policies = policies(session, finishes).await?;
    let mut decisions: Vec<FinishDecision<'_>> = finishes
        .iter()
        .enumerate()
        .map(|(index, finish)| FinishDecision::new(index, finish, &policies))
        .collect();
    decisions.sort_unstable_by_key(|d| (d.claim.token, d.claim.job, d.index));
    decisions.dedup_by_key(|d| d.claim);
    Ok(decisions)
}

/// The outcome of a claim; none if the job is a node, whose graph has to advance in the same transaction.
pub(crate) type FinishResult = (JobRef, Option<JobFinished>);

/// Ends the claims that the worker still holds, and returns their outcomes. `nodes`: the caller advances the graphs of nodes.
pub(crate) async fn end(
    session: Session<'_>,
    now: Option<Timestamp>,
    worker: &str,
    decisions: &[FinishDecision<'_>],
    nodes: bool,
    job_xid_offset: i64,
) -> Result<Vec<FinishResult>> {
    let pages = Pages::of(decisions.iter().map(|d| d.claim));
    let plain = decisions
        .iter()
        .all(|d| d.becomes == JobStatus::Completed && d.result.is_none());
    // Plain ones need no further columns.
    let detailed = if plain { &[] } else { decisions };
    let becomes: Vec<&str> = detailed.iter().map(|d| d.becomes.as_str()).collect();
    let results: Vec<Option<JsonIn<'_>>> = detailed.iter().map(|d| d.result.map(JsonIn)).collect();
    let errors: Vec<Option<&str>> = detailed.iter().map(|d| d.error.as_deref()).collect();
    let waits: Vec<i64> = detailed
        .iter()
        .map(|d| micros(bounded_wait(d.wait)))
        .collect();
    let uncounted: Vec<bool> = detailed.iter().map(|d| d.uncounted).collect();
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
        &job_xid_offset,
    ];
    let rows = session.many(sql!("job/finish"), params).await?;
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
