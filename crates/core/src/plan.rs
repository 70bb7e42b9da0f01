//! Plans and the limits they set.

use crate::limits::CONCURRENCY_MAX;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The plan of a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Plan {
    /// One execution at a time.
    Free,
    /// Five executions at a time.
    Pro,
    /// Twenty executions at a time.
    Enterprise,
}

/// A name that no plan has.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown plan `{0}`: expected FREE, PRO or ENTERPRISE")]
pub struct UnknownPlan(pub String);

/// A concurrency limit above [`CONCURRENCY_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a concurrency limit must be between 0 and {CONCURRENCY_MAX}, not {0}")]
pub struct LimitOutOfRange(pub u32);

impl Plan {
    /// Every plan, smallest first.
    pub const ALL: [Plan; 3] = [Plan::Free, Plan::Pro, Plan::Enterprise];

    /// Returns how many executions may run at once without an override.
    pub const fn max_concurrent_executions(self) -> u32 {
        match self {
            Plan::Free => 1,
            Plan::Pro => 5,
            Plan::Enterprise => 20,
        }
    }

    /// Returns how many bytes its open requests and executions may have without an override. The schemas have the same numbers.
    pub const fn max_open_bytes(self) -> u64 {
        match self {
            Plan::Free => 64 << 20,
            Plan::Pro => 512 << 20,
            Plan::Enterprise => 4 << 30,
        }
    }

    /// Returns the name, as stored and shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Plan::Free => "FREE",
            Plan::Pro => "PRO",
            Plan::Enterprise => "ENTERPRISE",
        }
    }
}

impl std::str::FromStr for Plan {
    type Err = UnknownPlan;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|plan| plan.as_str() == text)
            .ok_or_else(|| UnknownPlan(text.to_owned()))
    }
}

impl std::fmt::Display for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Returns the limit in force: the override if set, else the plan's.
pub fn effective_limit(plan: Plan, limit_override: Option<u32>) -> Result<u32, LimitOutOfRange> {
    match limit_override {
        None => Ok(plan.max_concurrent_executions()),
        Some(limit) if limit <= CONCURRENCY_MAX => Ok(limit),
        Some(limit) => Err(LimitOutOfRange(limit)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_allow_one_five_and_twenty() {
        let limits = Plan::ALL.map(Plan::max_concurrent_executions);
        assert_eq!(limits, [1, 5, 20]);
    }

    #[test]
    fn an_override_wins_and_may_be_zero_but_not_too_large() {
        assert_eq!(effective_limit(Plan::Pro, None), Ok(5));
        assert_eq!(effective_limit(Plan::Pro, Some(0)), Ok(0));
        assert_eq!(effective_limit(Plan::Free, Some(100_000)), Ok(100_000));
        assert_eq!(
            effective_limit(Plan::Free, Some(100_001)),
            Err(LimitOutOfRange(100_001))
        );
    }

    #[test]
    fn names_parse_back_and_others_are_rejected() {
        for plan in Plan::ALL {
            assert_eq!(plan.as_str().parse(), Ok(plan));
        }
        assert_eq!("free".parse::<Plan>(), Err(UnknownPlan("free".into())));
    }
}
