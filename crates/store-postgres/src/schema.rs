//! The name of the database schema that contains Leasehold's tables and functions, and statements with that name. Knows no table.

use leasehold_store::{Error, ErrorKind, Result};
use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

/// The schema if none is configured, as statements name it: `{schema}` in a file is replaced by this text at compile time.
pub(crate) const DEFAULT_SCHEMA: &str = "\"leasehold\"";
/// What stands for the schema in migrations and functions, which are read as they are in their files.
const PLACEHOLDER: &str = "{schema}";
/// PostgreSQL truncates longer names.
const NAME_MAX_BYTES: usize = 63;

/// Statements with the name of another schema, by the address of the original.
type RenamedStatements = HashMap<usize, Arc<str>>;

/// The schema that statements use; clones share the renamed ones.
#[derive(Clone)]
pub(crate) struct Schema {
    /// The name in double quotes, as statements contain it.
    quoted: Arc<str>,
    /// None for the default schema.
    renamed: Option<Arc<Mutex<RenamedStatements>>>,
}

/// A statement that names the schema.
pub(crate) enum Statement {
    Default(&'static str),
    Renamed(Arc<str>),
}

impl Deref for Statement {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Default(text) => text,
            Self::Renamed(text) => text,
        }
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schema").field(&self.quoted).finish()
    }
}

impl Schema {
    /// Checks the name. Names that need no quotes in SQL are accepted, except those of schemas in which other roles may create objects.
    pub(crate) fn new(name: &str) -> Result<Self> {
        let is_first = |c: char| c.is_ascii_lowercase() || c == '_';
        let is_plain = name.len() <= NAME_MAX_BYTES
            && name.starts_with(is_first)
            && name.chars().all(|c| is_first(c) || c.is_ascii_digit());
        let is_reserved =
            name == "public" || name == "information_schema" || name.starts_with("pg_");
        if !is_plain || is_reserved {
            let text = format!(
                "invalid schema \"{name}\": use lower-case letters, digits and _, at most {NAME_MAX_BYTES}, and neither public, information_schema nor pg_…"
            );
            return Err(Error::new("schema", ErrorKind::Value(text)));
        }
        let quoted: Arc<str> = format!("\"{name}\"").into();
        let renamed = (&*quoted != DEFAULT_SCHEMA).then(Arc::default);
        Ok(Self { quoted, renamed })
    }

    /// Returns the statement for this schema.
    pub(crate) fn statement(&self, sql: &'static str) -> Statement {
        let Some(renamed) = &self.renamed else {
            return Statement::Default(sql);
        };
        let mut renamed = renamed.lock().unwrap_or_else(PoisonError::into_inner);
        let text = renamed
            .entry(sql.as_ptr().addr())
            .or_insert_with(|| sql.replace(DEFAULT_SCHEMA, &self.quoted).into());
        Statement::Renamed(Arc::clone(text))
    }

    /// Returns a text of a migration, a function or a script for this schema.
    pub(crate) fn script(&self, text: &str) -> String {
        text.replace(PLACEHOLDER, &self.quoted)
            .replace(DEFAULT_SCHEMA, &self.quoted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statement_names_the_configured_schema() {
        const TEXT: &str = "'\"leasehold\".job_id' and \"leasehold\".job";
        let default = Schema::new("leasehold").unwrap();
        assert_eq!(&*default.statement(TEXT), TEXT);
        let other = Schema::new("tenant_2").unwrap();
        let expected = "'\"tenant_2\".job_id' and \"tenant_2\".job";
        assert_eq!(&*other.statement(TEXT), expected);
        assert_eq!(&*other.statement(TEXT), expected, "from memory");
        let script = other.script("{schema}.job and \"leasehold\".job");
        assert_eq!(script, "\"tenant_2\".job and \"tenant_2\".job");
    }

    #[test]
    fn schema_that_needs_quotes_or_is_shared_with_other_roles_is_rejected() {
        for name in [
            "",
            "Big",
            "a b",
            "a\"b",
            "a'b",
            "1a",
            "public",
            "pg_catalog",
            "information_schema",
            &"a".repeat(64),
        ] {
            assert!(Schema::new(name).is_err(), "{name}");
        }
        for name in ["leasehold", "_a1", &"a".repeat(63)] {
            assert!(Schema::new(name).is_ok(), "{name}");
        }
    }
}
