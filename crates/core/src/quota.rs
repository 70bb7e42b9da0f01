//! What a workspace may keep open: how many requests and how many bytes, what it has, and whether more fits. Knows no store.

use crate::Plan;
use crate::limits::{MAX_PENDING_DEFAULT, REQUEST_OVERHEAD_BYTES};

/// A number of requests and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// PENDING requests.
    pub requests: u64,
    /// Bytes of open requests and of the executions under way.
    pub bytes: u64,
}

/// The limits of a workspace and what it uses of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkspaceQuota {
    /// The maximum of PENDING requests.
    pub max_pending: u64,
    /// The maximum of bytes of open requests and executions.
    pub max_open_bytes: u64,
    /// What it has.
    pub used: Usage,
}

/// Why requests do not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaExceeded {
    /// Too many requests would be PENDING.
    Pending,
    /// Too many bytes would be open.
    Bytes,
}

impl Usage {
    /// Returns the sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_add(other.requests),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }

    /// Returns what is left without `other`, at least nothing.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(other.requests),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }
}

impl WorkspaceQuota {
    /// Checks whether `added` fits beside `used`.
    pub fn check(&self, used: Usage, added: Usage) -> Result<(), QuotaExceeded> {
        let total = used.plus(added);
        if total.requests > self.max_pending {
            Err(QuotaExceeded::Pending)
        } else if total.bytes > self.max_open_bytes {
            Err(QuotaExceeded::Bytes)
        } else {
            Ok(())
        }
    }

    /// Returns what fits beside `used`.
    pub fn room(&self, used: Usage) -> Usage {
        let limits = Usage {
            requests: self.max_pending,
            bytes: self.max_open_bytes,
        };
        limits.minus(used)
    }
}

/// Returns the bytes of a request whose params have this many bytes as JSON text.
pub fn request_bytes(params: usize) -> u64 {
    (params as u64).saturating_add(REQUEST_OVERHEAD_BYTES)
}

/// Returns the maximum of PENDING requests in force: the override, else the default.
pub fn effective_max_pending(max_pending_override: Option<u64>) -> u64 {
    max_pending_override.unwrap_or(MAX_PENDING_DEFAULT)
}

/// Returns the maximum of open bytes in force: the override, else the plan's.
pub fn effective_max_open_bytes(plan: Plan, max_open_bytes_override: Option<u64>) -> u64 {
    max_open_bytes_override.unwrap_or(plan.max_open_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(requests: u64, bytes: u64) -> Usage {
        Usage { requests, bytes }
    }

    #[test]
    fn both_limits_hold_and_reaching_them_is_allowed() {
        let quota = WorkspaceQuota {
            max_pending: 3,
            max_open_bytes: 100,
            used: Usage::default(),
        };
        let check = |used, added| quota.check(used, added);
        assert_eq!(check(usage(2, 50), usage(1, 50)), Ok(()));
        let pending = Err(QuotaExceeded::Pending);
        assert_eq!(check(usage(3, 0), usage(1, 0)), pending);
        assert_eq!(check(usage(2, 50), usage(1, 51)), Err(QuotaExceeded::Bytes));
        assert_eq!(check(usage(u64::MAX, 0), usage(1, 0)), pending);
        assert_eq!(quota.room(usage(1, 40)), usage(2, 60));
        assert_eq!(quota.room(usage(4, 200)), Usage::default());
    }

    #[test]
    fn override_replaces_the_default() {
        assert_eq!(effective_max_pending(None), 1_000_000);
        assert_eq!(effective_max_pending(Some(0)), 0);
        let bytes = |plan| effective_max_open_bytes(plan, None) >> 20;
        assert_eq!(Plan::ALL.map(bytes), [64, 512, 4_096]);
        assert_eq!(effective_max_open_bytes(Plan::Free, Some(7)), 7);
    }

    #[test]
    fn request_counts_its_params_and_a_fixed_overhead() {
        assert_eq!(request_bytes("null".len()), 1_028);
    }
}
