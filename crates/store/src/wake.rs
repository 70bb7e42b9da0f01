//! Wake-ups: what a sleeper can be woken for. They save waiting, and nothing depends on them: whoever sleeps also looks from time to time.

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
