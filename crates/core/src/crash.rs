//! Crashes of processes while they computed the input of a request, and when the request is poisoned. The store counts, the core decides.

use crate::limits::POISONED_AFTER_CRASHES;

/// The crashes in a row during the computation of a request's input. A computation that succeeds resets them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crashes {
    /// All of them.
    pub total: u32,
    /// The latest ones at which nothing else was computed in the process.
    pub alone: u32,
}

impl Crashes {
    /// Returns the crashes after one more; `alone` says whether nothing else was computed in that process.
    #[must_use]
    pub const fn after(self, alone: bool) -> Self {
        Self {
            total: self.total.saturating_add(1),
            // With others beside it, another request may be the cause: the row of crashes alone begins again.
            alone: if alone {
                self.alone.saturating_add(1)
            } else {
                0
            },
        }
    }

    /// Returns whether there were any. Then the input is computed with nothing beside it.
    pub const fn any(self) -> bool {
        self.total > 0
    }

    /// Returns whether the request is the cause: it must not be computed again.
    pub const fn is_poisoned(self) -> bool {
        self.alone >= POISONED_AFTER_CRASHES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_is_poisoned_after_three_crashes_alone_in_a_row() {
        let none = Crashes::default();
        assert!(!none.any() && !none.is_poisoned());
        let twice = none.after(true).after(true);
        assert!(twice.any() && !twice.is_poisoned());
        assert!(twice.after(true).is_poisoned());
        let interrupted = twice.after(false).after(true).after(true);
        assert!(!interrupted.is_poisoned());
        assert_eq!((interrupted.total, interrupted.alone), (5, 2));
        assert!(interrupted.after(true).is_poisoned());
    }
}
