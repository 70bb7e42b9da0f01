//! What happens because someone asked: checks what was asked, then one store operation. Knows ports only, no database and no HTTP.

pub mod enqueue;
pub mod job;
pub mod publish;
mod schema;

pub use enqueue::{EnqueueError, Enqueuer};
pub use job::JobError;
pub use publish::{PublishError, publish};
