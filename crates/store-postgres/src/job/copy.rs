//! Encodes jobs in PostgreSQL's binary COPY format. Does no I/O.

use leasehold_core::JobId;
use leasehold_store::job::NewJob;

use super::enqueue::{attempts, trace};
use crate::row::micros;

const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const COLUMNS: i16 = 12;
const END: i16 = -1;

/// Encodes these jobs, with the columns in the order of `sql/job/copy.sql`.
pub(super) fn encode<'a>(jobs: impl Iterator<Item = (JobId, i32, &'a NewJob)>) -> Vec<u8> {
    let mut out = HEADER.to_vec();
    for (id, queue, job) in jobs {
        out.extend(COLUMNS.to_be_bytes());
        field(&mut out, &id.0.to_be_bytes());
        field(&mut out, &queue.to_be_bytes());
        field(&mut out, &job.priority.to_be_bytes());
        field(&mut out, job.kind.as_bytes());
        field(&mut out, job.payload.as_str().as_bytes());
        optional_field(&mut out, attempts(job).map(i32::to_be_bytes));
        optional_field(
            &mut out,
            job.timeout.map(|timeout| micros(timeout).to_be_bytes()),
        );
        let backoff = job.backoff;
        optional_field(&mut out, backoff.map(|b| micros(b.base).to_be_bytes()));
        optional_field(&mut out, backoff.map(|b| micros(b.max).to_be_bytes()));
        optional_field(&mut out, backoff.map(|b| b.factor.to_be_bytes()));
        optional_field(&mut out, backoff.map(|b| b.jitter.to_be_bytes()));
        optional_field(&mut out, trace(job));
    }
    out.extend(END.to_be_bytes());
    out
}

fn field(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = i32::try_from(bytes.len()).unwrap_or(i32::MAX);
    out.extend(length.to_be_bytes());
    out.extend(bytes);
}

fn optional_field(out: &mut Vec<u8>, bytes: Option<impl AsRef<[u8]>>) {
    match bytes {
        Some(bytes) => field(out, bytes.as_ref()),
        None => out.extend((-1_i32).to_be_bytes()),
    }
}
