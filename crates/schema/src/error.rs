//! Why a schema is refused, and why a value does not match: each error names the place and the rule or limit.

use crate::meter::ValidationLimit;
use crate::pattern::PatternProblem;
use leasehold_core::limits::{
    JSON_MAX_DEPTH, PATTERN_MAX_PROGRAM_BYTES, SCHEMA_MAX_EXPANDED, SCHEMA_MAX_PATTERNS,
    SCHEMA_MAX_PROGRAM_BYTES, SCHEMA_MAX_REF_DEPTH, SCHEMA_MAX_SUBSCHEMAS, SCHEMA_MAX_URI_BYTES,
};
use thiserror::Error;

/// Why a schema is refused, and where.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}{problem}", at(.path))]
pub struct SchemaError {
    /// JSON pointer into the schema, empty for the whole.
    pub path: String,
    /// The problem.
    pub problem: SchemaProblem,
}

/// A problem of a schema.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SchemaProblem {
    /// A value where a schema must be.
    #[error("a schema must be an object{}", if *.boolean_allowed { " or a boolean" } else { "" })]
    NotASchema {
        /// Whether the draft has boolean schemas here.
        boolean_allowed: bool,
    },
    /// A `$schema` that is not supported.
    #[error(
        "`$schema` {0} is not supported; use draft 2020-12, 2019-09, draft-07, draft-06 or draft-04, or omit it for 2020-12"
    )]
    Dialect(String),
    /// A keyword with an invalid value.
    #[error("`{keyword}` must be {rule}")]
    Keyword {
        /// The keyword.
        keyword: String,
        /// What its value must be.
        rule: &'static str,
    },
    /// A reference to nothing in this document.
    #[error("{reference} is not in this document; references must stay in the document")]
    Unresolved {
        /// The reference, shortened.
        reference: String,
    },
    /// An identifier that two schemas have.
    #[error("{0} identifies another schema of this document already")]
    Duplicate(String),
    /// References that lead back to the same schema for the same value.
    #[error(
        "this schema applies itself to the same value again; a loop of `$ref`s must descend into the value"
    )]
    Loop,
    /// A pattern that is invalid, or not supported.
    #[error("pattern {pattern}: {problem}")]
    Pattern {
        /// The pattern, shortened.
        pattern: String,
        /// The problem.
        problem: PatternProblem,
    },
    /// More than a limit allows.
    #[error(transparent)]
    Limit(#[from] SchemaLimit),
}

/// The limit that a schema breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SchemaLimit {
    /// Depth of the document.
    #[error("a schema must not nest deeper than {JSON_MAX_DEPTH} levels")]
    Depth,
    /// Number of subschemas.
    #[error("a schema must not have more than {SCHEMA_MAX_SUBSCHEMAS} subschemas")]
    Subschemas,
    /// Depth of references.
    #[error(
        "`$ref`s and applicators such as `allOf` must not apply a chain of more than {SCHEMA_MAX_REF_DEPTH} schemas to one value"
    )]
    RefDepth,
    /// Size when references are expanded.
    #[error(
        "with all `$ref`s expanded, one value must not be compared with more than {SCHEMA_MAX_EXPANDED} keywords"
    )]
    Expanded,
    /// Bytes of an identifier or a reference.
    #[error("identifiers and references must have at most {SCHEMA_MAX_URI_BYTES} bytes")]
    Uri,
    /// Number of patterns.
    #[error("a schema must not have more than {SCHEMA_MAX_PATTERNS} different patterns")]
    Patterns,
    /// Bytes of the programs of all patterns.
    #[error(
        "the compiled patterns of a schema must have at most {SCHEMA_MAX_PROGRAM_BYTES} bytes together (one at most {PATTERN_MAX_PROGRAM_BYTES}); use fewer repetitions and Unicode classes"
    )]
    Programs,
}

/// Why a value is not valid, or why validation stopped.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ValidationError {
    /// The value does not match the schema.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// A limit was reached; it is unknown whether the value matches.
    #[error(transparent)]
    LimitExceeded(#[from] ValidationLimit),
}

/// The first mismatch of a value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}{message}", at(.path))]
pub struct Mismatch {
    /// JSON pointer into the value, empty for the whole.
    pub path: String,
    /// The keyword that does not match.
    pub keyword: &'static str,
    /// What is expected. Repeats no large value.
    pub message: String,
}

fn at(path: &str) -> String {
    if path.is_empty() {
        String::new()
    } else {
        format!("at {path}: ")
    }
}
