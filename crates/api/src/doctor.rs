//! What an examination of an installation found.

use leasehold_core::doctor;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// It works, and is worth a look.
    Warning,
    /// It does not work, or work may be lost.
    Problem,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Finding {
    /// What was looked at.
    pub check: String,
    /// How it is.
    pub verdict: Verdict,
    /// What was seen.
    pub says: String,
    /// What to do, unless all is well.
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

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Findings {
    /// In the order they were looked at.
    pub findings: Vec<Finding>,
}
