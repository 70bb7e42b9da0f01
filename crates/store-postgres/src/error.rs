//! Maps PostgreSQL and pool errors to the port's errors.

use deadpool_postgres::PoolError;
use leasehold_store::{Error, ErrorKind};
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

/// Maps an error of the connection pool.
pub(crate) fn pool(context: &'static str) -> impl Fn(PoolError) -> Error {
    move |error| match error {
        PoolError::Backend(error) => {
            let mut mapped = postgres(context)(error);
            if let ErrorKind::Broken(text) = mapped.kind {
                mapped.kind = ErrorKind::Unavailable(text);
            }
            mapped
        }
        other => Error::new(context, ErrorKind::Unavailable(other.to_string())).because(other),
    }
}

/// Maps like [`postgres`], for reads of the tables of applied migrations and functions, which a role may lack the privilege for.
pub(crate) fn schema_record(context: &'static str) -> impl Fn(tokio_postgres::Error) -> Error {
    move |error| {
        let text = match error.as_db_error() {
            Some(db) if *db.code() == SqlState::INSUFFICIENT_PRIVILEGE => format!(
                "cannot read the schema version: the role that Leasehold connects as lacks a privilege ({}); \
                 run GRANT SELECT ON leasehold_migration, leasehold_function TO that role",
                db.message()
            ),
            _ => return postgres(context)(error),
        };
        Error::new(context, ErrorKind::Schema(text)).because(error)
    }
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
    if *code == SqlState::T_R_SERIALIZATION_FAILURE
        || *code == SqlState::T_R_DEADLOCK_DETECTED
        || *code == SqlState::LOCK_NOT_AVAILABLE
        || *code == SqlState::QUERY_CANCELED
    {
        return ErrorKind::Contended(text);
    }
    if *code == SqlState::UNDEFINED_TABLE || *code == SqlState::UNDEFINED_FUNCTION {
        return ErrorKind::Schema(format!(
            "the database has no Leasehold schema, or an incomplete one ({text}); run `leasehold migrate up`"
        ));
    }
    match code.code().get(..2) {
        Some("23") => ErrorKind::Constraint(error.constraint().unwrap_or(code.code()).to_owned()),
        Some("22") => ErrorKind::Value(text),
        Some("08" | "57" | "25") => ErrorKind::Unavailable(text),
        // Full disk, out of memory, too many connections; errors of the operating system. These can be fixed without a restart.
        Some("53" | "58") => ErrorKind::Unavailable(text),
        Some("28") => ErrorKind::Unavailable(text),
        Some("3D") => ErrorKind::Unavailable(text),
        _ => ErrorKind::Broken(format!("{text} (SQLSTATE {})", code.code())),
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
