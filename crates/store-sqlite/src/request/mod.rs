//! Requests: one file a verb. Each function is one atomic operation and runs inside a savepoint of the writer.

pub(crate) mod calls;
pub(crate) mod cancel;
pub(crate) mod claim;
pub(crate) mod enqueue;
pub(crate) mod event;
pub(crate) mod read;
pub(crate) mod redrive;
pub(crate) mod resolve;
pub(crate) mod settle;
