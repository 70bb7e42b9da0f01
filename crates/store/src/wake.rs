//! Wake-ups: what a sleeper can be woken for. They save waiting, and nothing depends on them: whoever sleeps also looks from time to time.

use crate::Result;
use crate::store_trait::store_trait;

store_trait! {
    /// Wake-ups of the services.
    pub trait WakeStore, observed by WakeObserver {
        /// Says that the caller is about to sleep until [`Wake::Work`]: whatever gives it work from now on wakes it. What was
        /// committed before does not, so the caller looks once more before it sleeps. False where the store cannot promise
        /// it now; then only looking from time to time helps.
        async fn wake_arm(&self) -> Result<bool>;

        /// Wakes whoever waits for it, here and in the other processes that use the store.
        async fn wake_ring(&self, wake: Wake) -> Result<()>;
    }

    forwarded async {
        /// Returns when there may be something to do, never before it was rung for; two rings may be one. Rings that came while nobody
        /// waited are not lost. One waiter a kind.
        async fn wake_wait(&self, wake: Wake);
    }
}

/// What a sleeper waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wake {
    /// There may be something to admit: a new request, a freed slot, a raised limit, a claim given back.
    Work,
    /// Someone wishes to cancel what runs.
    Cancel,
    /// Someone says that executions have ended.
    Ended,
}

impl Wake {
    /// Every kind.
    pub const ALL: [Wake; 3] = [Self::Work, Self::Cancel, Self::Ended];

    /// The name it travels under.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Cancel => "cancel",
            Self::Ended => "ended",
        }
    }
}
