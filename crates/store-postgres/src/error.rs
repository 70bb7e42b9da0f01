//! Maps PostgreSQL and pool errors to the port's errors.

use deadpool_postgres::{HookError, PoolError};
use leasehold_store::{Condition, Error, ErrorKind};
use std::fmt;
use tokio_postgres::error::{DbError, SqlState};

/// Maps a driver error.
pub(crate) fn postgres(
    context: &'static str,
) -> impl Fn(tokio_postgres::Error) -> Error + Copy + Send + Sync {
    move |error| {
        let kind = match error.as_db_error() {
            Some(db) => database(db),
            None if error.is_closed() || has_io_source(&error) => {
                ErrorKind::Unavailable(chain(&error))
            }
            None => ErrorKind::Broken(chain(&error)),
        };
        Error::new(context, kind).because(error)
    }
}

/// An error for a row that another transaction keeps locked.
pub(crate) fn busy(context: &'static str) -> Error {
    let text = "another transaction has locked the row".to_owned();
    Error::new(context, ErrorKind::Contended(text)).because(RowLocked)
}

/// What `leasehold_begin` fails with.
const OTHER_EPOCH: &str = "LH001";

/// Whether the error says that the server behind a pooler is another one than the connection knew. The transaction did nothing.
pub(crate) fn is_other_epoch(error: &Error) -> bool {
    let source = error.source.as_deref();
    let source = source.and_then(|source| source.downcast_ref::<tokio_postgres::Error>());
    source.is_some_and(is_of_other_epoch)
}

/// The same for an error of the driver.
pub(crate) fn is_of_other_epoch(error: &tokio_postgres::Error) -> bool {
    error.code().is_some_and(|code| code.code() == OTHER_EPOCH)
}

/// The source of [`busy`].
#[derive(Debug)]
struct RowLocked;

impl fmt::Display for RowLocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("row locked")
    }
}

impl std::error::Error for RowLocked {}

/// Whether the error says that the operation gave up waiting for a lock. It changed nothing, and the same call may succeed later.
pub(crate) fn is_lock_timeout(error: &Error) -> bool {
    let Some(source) = &error.source else {
        return false;
    };
    let code = source
        .downcast_ref::<tokio_postgres::Error>()
        .and_then(tokio_postgres::Error::code);
    source.is::<RowLocked>() || code == Some(&SqlState::LOCK_NOT_AVAILABLE)
}

/// Whether the error says that a statement was cancelled.
pub(crate) fn is_cancelled(error: &Error) -> bool {
    let source = error.source.as_deref();
    let source = source.and_then(|source| source.downcast_ref::<tokio_postgres::Error>());
    source.and_then(tokio_postgres::Error::code) == Some(&SqlState::QUERY_CANCELED)
}

/// Maps an error of the connection pool.
pub(crate) fn pool(context: &'static str) -> impl Fn(PoolError) -> Error {
    move |error| match error {
        PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => {
            let mut mapped = postgres(context)(error);
            if let ErrorKind::Broken(text) = mapped.kind {
                mapped.kind = ErrorKind::Unavailable(text);
            }
            mapped
        }
        other => Error::new(context, ErrorKind::Unavailable(other.to_string())).because(other),
    }
}

/// Names the missing privilege if a read of the tables of applied migrations and functions failed for it.
pub(crate) fn schema_record(error: Error) -> Error {
    let source = error.source.as_deref();
    let source = source.and_then(|source| source.downcast_ref::<tokio_postgres::Error>());
    let text = match source.and_then(tokio_postgres::Error::as_db_error) {
        Some(db) if *db.code() == SqlState::INSUFFICIENT_PRIVILEGE => format!(
            "cannot read the schema version: the role that Leasehold connects as lacks a privilege ({}); run GRANT USAGE ON SCHEMA … TO that \
             role and GRANT SELECT ON ….leasehold_migration, ….leasehold_function TO that role, with the name of store.schema",
            db.message()
        ),
        _ => return error,
    };
    Error {
        kind: ErrorKind::Schema(text),
        ..error
    }
}

/// An error for a statement that returned another number of rows than one.
pub(crate) fn unexpected_rows(context: &'static str, count: usize) -> Error {
    let text = format!("a statement that returns one row returned {count}");
    Error::new(context, ErrorKind::Broken(text))
}

/// An error for a pooler in transaction mode that the settings do not name. `seen`: what shows it.
pub(crate) fn shared_sessions(seen: &str) -> ErrorKind {
    ErrorKind::Unavailable(format!(
        "the address of the store is that of a pooler that shares sessions between its clients ({seen}); set store.pooler = \"transaction\"; \
         if that is set, the pooler knows no prepared statements: set store.prepared_statements = false"
    ))
}

/// An error for a row that the program cannot decode.
pub(crate) fn unreadable(
    context: &'static str,
    error: impl std::error::Error + Send + Sync + 'static,
) -> Error {
    Error::new(context, ErrorKind::Broken(error.to_string())).because(error)
}

fn database(error: &DbError) -> ErrorKind {
    let code = error.code();
    let text = error.message().to_owned();
    if *code == SqlState::UNDEFINED_TABLE || *code == SqlState::UNDEFINED_FUNCTION {
        return ErrorKind::Schema(format!(
            "the database has no Leasehold schema, or an incomplete one ({text}); run `leasehold migrate up`"
        ));
    }
    if is_in_another_session(code, &text) {
        return shared_sessions(&text);
    }
    if code.code() == OTHER_EPOCH {
        return ErrorKind::Unavailable(text);
    }
    if code.code().starts_with("23") {
        return ErrorKind::Constraint(error.constraint().unwrap_or(code.code()).to_owned());
    }
    match condition(code, error.routine()) {
        Condition::Damaged => Condition::Damaged.kind(format!("{text} (SQLSTATE {})", code.code())),
        condition => condition.kind(text),
    }
}

/// Whether a prepared statement is not the one that this connection prepared: the session is another one.
fn is_in_another_session(code: &SqlState, text: &str) -> bool {
    *code == SqlState::INVALID_SQL_STATEMENT_NAME
        || *code == SqlState::DUPLICATE_PSTATEMENT
        || *code == SqlState::PROTOCOL_VIOLATION && text.contains("prepared statement")
}

/// Maps a SQLSTATE. `routine`: the function of the server that reported the error.
fn condition(code: &SqlState, routine: Option<&str>) -> Condition {
    let precise = [
        (SqlState::DISK_FULL, Condition::DiskFull),
        (SqlState::IO_ERROR, Condition::Io),
        (SqlState::READ_ONLY_SQL_TRANSACTION, Condition::ReadOnly),
        (SqlState::T_R_SERIALIZATION_FAILURE, Condition::Conflict),
        (SqlState::T_R_DEADLOCK_DETECTED, Condition::Conflict),
        (SqlState::LOCK_NOT_AVAILABLE, Condition::Conflict),
        (SqlState::QUERY_CANCELED, Condition::Conflict),
        (
            SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN,
            Condition::Interrupted,
        ),
    ];
    if let Some((_, condition)) = precise.into_iter().find(|(known, _)| known == code) {
        return condition;
    }
    // A missing privilege, or a file that the server may not write: on a file system that became read-only the code is the same.
    if *code == SqlState::INSUFFICIENT_PRIVILEGE && routine != Some("aclcheck_error") {
        return Condition::ReadOnly;
    }
    match code.code().get(..2) {
        Some("22") => Condition::Value,
        // Out of memory, too many connections or files.
        Some("53") => Condition::Exhausted,
        // An error of the operating system, for example a file that cannot be opened.
        Some("58") => Condition::Io,
        // Connection errors, shutdown and start, invalid transaction states, logins, missing databases. An operator can fix these without
        // a restart of Leasehold.
        Some("08" | "57" | "25" | "28" | "3D") => Condition::Unreachable,
        _ => Condition::Damaged,
    }
}

fn has_io_source(error: &tokio_postgres::Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if cause.is::<std::io::Error>() {
            return true;
        }
        source = cause.source();
    }
    false
}

fn chain(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_that_can_pass_is_unavailable() {
        let unavailable = [
            "53100", "53200", "53300", "58030", "58P01", "57P01", "57P02", "57P03", "57P05",
            "25006", "25P03", "08006", "28000", "3D000", "40003",
        ];
        for code in unavailable {
            let kind = condition(&SqlState::from_code(code), None).kind("");
            assert!(matches!(kind, ErrorKind::Unavailable(_)), "{code}: {kind}");
        }
        for code in ["40001", "40P01", "55P03", "57014"] {
            let kind = condition(&SqlState::from_code(code), None).kind("");
            assert!(matches!(kind, ErrorKind::Contended(_)), "{code}: {kind}");
        }
        for code in ["XX000", "XX001", "XX002", "42703"] {
            let kind = condition(&SqlState::from_code(code), None).kind("");
            assert!(matches!(kind, ErrorKind::Broken(_)), "{code}: {kind}");
        }
    }

    #[test]
    fn file_that_the_server_may_not_write_is_unavailable_but_a_missing_privilege_is_not() {
        let denied = SqlState::INSUFFICIENT_PRIVILEGE;
        assert_eq!(condition(&denied, Some("mdextend")), Condition::ReadOnly);
        assert_eq!(
            condition(&denied, Some("aclcheck_error")),
            Condition::Damaged
        );
    }
}
