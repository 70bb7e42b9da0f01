//! The findings of `doctor`: the check, its verdict and what to do. Runs no check.

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The check passed.
    Ok,
    /// It works, but needs attention.
    Warning,
    /// It does not work, or work may be lost.
    Problem,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The name of the check.
    pub check: &'static str,
    /// The severity.
    pub verdict: Verdict,
    /// What the check found.
    pub says: String,
    /// What to do; none if the check passed.
    pub todo: Option<String>,
}
