//! JSON of the doctor's findings.

use leasehold_core::doctor;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// No problem.
    Ok,
    /// It works, but needs attention.
    Warning,
    /// It does not work, or work may be lost.
    Problem,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Finding {
    /// The name of the check.
    pub check: String,
    /// The severity.
    pub verdict: Verdict,
    /// What the check found.
    pub says: String,
    /// What to do; absent if there is no problem.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub todo: Option<String>,
}

impl From<doctor::Finding> for Finding {
    fn from(found: doctor::Finding) -> Self {
        Self {
            check: found.check.to_owned(),
            verdict: match found.verdict {
                doctor::Verdict::Ok => Verdict::Ok,
                doctor::Verdict::Warning => Verdict::Warning,
                doctor::Verdict::Problem => Verdict::Problem,
            },
            says: found.says,
            todo: found.todo,
        }
    }
}

/// The results of all checks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Findings {
    /// The results, in the order of the checks.
    pub findings: Vec<Finding>,
}
