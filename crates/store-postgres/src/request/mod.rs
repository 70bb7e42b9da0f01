//! Requests in PostgreSQL, one file a group of verbs.

pub(crate) mod cancel;
pub(crate) mod claim;
pub(crate) mod enqueue;
pub(crate) mod read;
pub(crate) mod resolve;
