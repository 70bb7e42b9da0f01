//! Jobs in SQLite, one file a group of verbs. Each job is one row that never changes; the files here move what says where it is.

pub(crate) mod calls;
pub(crate) mod cancel;
pub(crate) mod claim;
pub(crate) mod enqueue;
pub(crate) mod expire;
pub(crate) mod finish;
pub(crate) mod hold;
pub(crate) mod list;
pub(crate) mod prune;
pub(crate) mod read;
pub(crate) mod wish;

mod end;
mod lease;
mod line;
mod page;
mod wait;
