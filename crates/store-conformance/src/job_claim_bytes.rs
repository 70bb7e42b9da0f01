//! A claim is cut by bytes: it takes the jobs that fit, at least one, and the others stay as they are.

use crate::Fixture;
use crate::factory::ok;
use crate::job_factory::{QUEUE, WORKER, failed, job_ids, job_with_priority, new_job};
use leasehold_core::job::{JobEnd, JobStatus, RetryMode};
use leasehold_core::limits::{CLAIM_MAX_BYTES, PAYLOAD_MAX_BYTES};
use leasehold_core::{JobId, JsonText};
use leasehold_store::job::NewJob;
use std::time::Duration;

/// Bytes of a large payload.
const LARGE: usize = 250 * 1024;

/// A document of this size whose text compresses well, or hardly at all.
fn document(bytes: usize, compresses: bool, seed: u64) -> JsonText {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut letter = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'0' + u8::try_from(state % 75).unwrap_or_default())
    };
    let text: String = if compresses {
        "x".repeat(bytes - 2)
    } else {
        std::iter::repeat_with(|| match letter() {
            '"' | '\\' => 'ä',
            other => other,
        })
        .filter(char::is_ascii)
        .take(bytes - 2)
        .collect()
    };
    JsonText::trusted(format!("\"{text}\""))
}

fn large_job(compresses: bool, seed: u64) -> NewJob {
    NewJob {
        payload: document(LARGE, compresses, seed),
        ..new_job()
    }
}

/// Claims all jobs in calls of at most 1,000 and returns how many each call returned, and all ids.
async fn claim_all(f: &Fixture) -> (Vec<usize>, Vec<JobId>) {
    let (mut counts, mut ids) = (Vec::new(), Vec::new());
    loop {
        let claimed = f.claim_jobs(1_000).await;
        if claimed.is_empty() {
            return (counts, ids);
        }
        let bytes: usize = claimed.iter().map(|job| job.bytes()).sum();
        assert!(bytes <= CLAIM_MAX_BYTES || claimed.len() == 1, "{bytes}");
        counts.push(claimed.len());
        ids.extend(job_ids(&claimed));
    }
}

/// Large payloads end a claim early; the next claim continues in order, and no attempt is counted twice.
pub async fn claim_returns_the_jobs_that_fit(f: Fixture) {
    for compresses in [true, false] {
        let jobs: Vec<NewJob> = (0..40).map(|seed| large_job(compresses, seed)).collect();
        let all = f.enqueue_new_jobs(&jobs).await;
        let (counts, ids) = claim_all(&f).await;
        assert_eq!(ids, all);
        assert_eq!(counts, [16, 16, 8], "compressed: {compresses}");
        for id in all {
            assert_eq!(f.job(id).await.attempts, 1);
        }
    }
}

/// The jobs that did not fit stay queued, with their attempts.
pub async fn jobs_that_do_not_fit_stay_queued(f: Fixture) {
    let jobs: Vec<NewJob> = (0..20).map(|seed| large_job(true, seed)).collect();
    let all = f.enqueue_new_jobs(&jobs).await;
    let claimed = f.claim_outcome(1_000).await;
    assert_eq!(job_ids(&claimed.jobs), all[..16]);
    assert!(!claimed.at_limit, "no limit ended the claim");
    for id in &all[16..] {
        let job = f.job(*id).await;
        assert_eq!((job.status, job.attempts), (JobStatus::Queued.into(), 0));
    }
}

/// Small jobs behind large ones do not pass them, in their line or in a line of lower priority.
pub async fn small_jobs_do_not_pass_large_ones_that_do_not_fit(f: Fixture) {
    let mut jobs: Vec<NewJob> = (0..17).map(|seed| large_job(true, seed)).collect();
    jobs.push(new_job());
    jobs.push(job_with_priority(-1));
    let all = f.enqueue_new_jobs(&jobs).await;
    let (counts, ids) = claim_all(&f).await;
    assert_eq!(ids, all);
    assert_eq!(counts, [16, 3]);
}

/// One job is claimed even if it alone does not fit: payload, progress and error count.
pub async fn claim_returns_at_least_one_job(f: Fixture) {
    let first = f.enqueue_claimed_job(large_job(true, 1)).await;
    let progress = document(PAYLOAD_MAX_BYTES, true, 2);
    let reported = f.store.job_progress(WORKER, first.claim(), &progress);
    assert!(ok(reported.await));
    f.finish_job(&first, failed(RetryMode::After(Duration::ZERO)))
        .await;
    let again = f.claim_jobs(1_000).await;
    assert_eq!(job_ids(&again), [first.id]);
    assert_eq!(again[0].progress.as_ref(), Some(&progress));
}

/// Progress of earlier attempts counts towards the bytes of a claim, also if the attempts do not count.
pub async fn progress_counts_towards_the_bytes_of_a_claim(f: Fixture) {
    let jobs: Vec<NewJob> = (0..30).map(|_| new_job()).collect();
    let all = f.enqueue_new_jobs(&jobs).await;
    let claimed = f.claim_jobs(1_000).await;
    assert_eq!(job_ids(&claimed), all);
    let progress = document(LARGE, true, 3);
    for job in &claimed {
        let reported = f.store.job_progress(WORKER, job.claim(), &progress);
        assert!(ok(reported.await));
        f.finish_job(job, JobEnd::Returned).await;
    }
    let (counts, ids) = claim_all(&f).await;
    assert_eq!(ids, all);
    assert_eq!(counts, [16, 14]);
    assert_eq!(f.job(all[0]).await.queue, QUEUE);
}

/// Many small jobs are claimed at once.
pub async fn small_jobs_fill_a_claim(f: Fixture) {
    let all = f.enqueue_jobs(1_000).await;
    assert_eq!(job_ids(&f.claim_jobs(1_000).await), all);
}
