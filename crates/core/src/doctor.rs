//! What an examination of an installation finds: what was looked at, how it is, what to do. Looks at nothing.

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// It works, and is worth a look.
    Warning,
    /// It does not work, or work may be lost.
    Problem,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at.
    pub check: &'static str,
    /// How it is.
    pub verdict: Verdict,
    /// What was seen.
    pub says: String,
    /// What to do, unless all is well.
    pub todo: Option<String>,
}
