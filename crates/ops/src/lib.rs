//! What happens because someone asked: checks what was asked, then one store operation. Knows ports only, no database and no HTTP.

pub mod enqueue;
pub mod publish;
mod schema;

pub use enqueue::{EnqueueError, Enqueuer};
pub use publish::{PublishError, publish};
