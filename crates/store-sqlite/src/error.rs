//! Maps SQLite errors to the store's error kinds. The only file that reads SQLite's error codes and messages.

use leasehold_store::{Condition, Error, ErrorKind};
use rusqlite::ffi::{self, ErrorCode};

/// A failure inside an operation, before the operation's name is added.
#[derive(Debug)]
pub(crate) enum Fault {
    /// An error of SQLite.
    Sqlite(rusqlite::Error),
    /// An error of this store.
    Store(ErrorKind),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<ErrorKind> for Fault {
    fn from(kind: ErrorKind) -> Self {
        Self::Store(kind)
    }
}

impl Fault {
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::Sqlite(error) => kind(error),
            Self::Store(kind) => kind.clone(),
        }
    }

    pub(crate) fn during(self, context: &'static str) -> Error {
        let error = Error::new(context, self.kind());
        match self {
            Self::Sqlite(source) => error.because(source),
            Self::Store(_) => error,
        }
    }

    /// Whether SQLite was asked to stop: a read exceeded its limit.
    pub(crate) fn is_interrupted(&self) -> bool {
        let Self::Sqlite(error) = self else {
            return false;
        };
        error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted)
    }

    /// Whether the store itself failed, and not one item of it: other items would fail too.
    pub(crate) fn is_of_store(&self) -> bool {
        !self.kind().concerns_one_item()
    }

    /// Whether the operation violated the named constraint.
    pub(crate) fn violates(&self, constraint: &str) -> bool {
        matches!(self.kind(), ErrorKind::Constraint(name) if name == constraint)
    }
}

fn kind(error: &rusqlite::Error) -> ErrorKind {
    match error {
        rusqlite::Error::SqliteFailure(failure, message) => {
            failure_kind(*failure, message.as_deref().unwrap_or_default())
        }
        // The statement does not prepare: its tables are missing.
        rusqlite::Error::SqlInputError { msg, .. } => prepare_kind(msg),
        rusqlite::Error::ToSqlConversionFailure(source) => ErrorKind::Value(source.to_string()),
        other => ErrorKind::Broken(other.to_string()),
    }
}

fn failure_kind(failure: ffi::Error, message: &str) -> ErrorKind {
    let text = if message.is_empty() {
        failure.to_string()
    } else {
        message.to_owned()
    };
    match failure.code {
        ErrorCode::ConstraintViolation => constraint_kind(failure.extended_code, message),
        ErrorCode::Unknown => prepare_kind(&text),
        code => condition(code).kind(text),
    }
}

/// Maps SQLite's primary result codes.
fn condition(code: ErrorCode) -> Condition {
    match code {
        ErrorCode::DiskFull => Condition::DiskFull,
        ErrorCode::SystemIoFailure => Condition::Io,
        ErrorCode::ReadOnly => Condition::ReadOnly,
        ErrorCode::OutOfMemory => Condition::Exhausted,
        ErrorCode::CannotOpen | ErrorCode::PermissionDenied => Condition::Unreachable,
        // Aborted: an earlier error rolled the transaction back while the statement ran.
        ErrorCode::OperationInterrupted | ErrorCode::OperationAborted => Condition::Interrupted,
        ErrorCode::DatabaseBusy
        | ErrorCode::DatabaseLocked
        | ErrorCode::FileLockingProtocolFailed => Condition::Conflict,
        ErrorCode::TooBig | ErrorCode::TypeMismatch => Condition::Value,
        _ => Condition::Damaged,
    }
}

fn prepare_kind(message: &str) -> ErrorKind {
    if message.starts_with("no such table") || message.starts_with("no such column") {
        return ErrorKind::Schema(format!(
            "the schema does not match this version of Leasehold ({message}); run the migrations"
        ));
    }
    ErrorKind::Broken(message.to_owned())
}

fn constraint_kind(extended: i32, message: &str) -> ErrorKind {
    match extended {
        ffi::SQLITE_CONSTRAINT_CHECK => {
            ErrorKind::Constraint(after_colon(message).unwrap_or(message).to_owned())
        }
        // The trigger raises the constraint's name as the message.
        ffi::SQLITE_CONSTRAINT_TRIGGER => ErrorKind::Constraint(message.to_owned()),
        ffi::SQLITE_CONSTRAINT_UNIQUE
        | ffi::SQLITE_CONSTRAINT_PRIMARYKEY
        | ffi::SQLITE_CONSTRAINT_ROWID => {
            ErrorKind::Constraint(unique_name(after_colon(message).unwrap_or(message)))
        }
        // SQLite does not name the foreign key.
        ffi::SQLITE_CONSTRAINT_FOREIGNKEY => ErrorKind::Constraint("foreign_key".to_owned()),
        ffi::SQLITE_CONSTRAINT_NOTNULL => ErrorKind::Constraint(format!(
            "{}_not_null",
            after_colon(message).unwrap_or(message).replace('.', "_")
        )),
        ffi::SQLITE_CONSTRAINT_DATATYPE => ErrorKind::Value(message.to_owned()),
        _ => ErrorKind::Constraint(message.to_owned()),
    }
}

fn after_colon(message: &str) -> Option<&str> {
    message.split_once(": ").map(|(_, name)| name)
}

/// Maps the columns that SQLite reports to the constraint's name, as PostgreSQL reports it.
fn unique_name(columns: &str) -> String {
    const NAMES: [(&str, &str); 22] = [
        ("workspace.id", "workspace_pkey"),
        ("workspace.name", "workspace_name"),
        ("workspace_turn.workspace_id", "workspace_turn_pkey"),
        ("workflow_definition.id", "workflow_definition_pkey"),
        (
            "workflow_definition.workspace_id, workflow_definition.name",
            "workflow_definition_name",
        ),
        (
            "workflow_definition_version.id",
            "workflow_definition_version_pkey",
        ),
        (
            "workflow_definition_version.definition_id, workflow_definition_version.number",
            "workflow_definition_version_number",
        ),
        (
            "workflow_execution_queue.id",
            "workflow_execution_queue_pkey",
        ),
        (
            "workflow_execution_queue.workspace_id, workflow_execution_queue.idempotency_key",
            "request_idempotency_key",
        ),
        (
            "workflow_execution_queue.live_redrive_of",
            "request_one_live_redrive",
        ),
        ("kept_key.workspace_id, kept_key.key", "kept_key_pkey"),
        ("workflow_execution.id", "workflow_execution_pkey"),
        ("workflow_execution.request_id", "execution_request_once"),
        (
            "workflow_execution.workspace_id, workflow_execution.slot",
            "execution_slot_once",
        ),
        ("queue.name", "queue_name"),
        ("job_key.queue_id, job_key.key", "job_key_once"),
        ("job_waiting.job_id", "job_waiting_pkey"),
        ("job_lease.token", "job_lease_pkey"),
        ("job_end.job_id", "job_end_pkey"),
        ("api_key.id", "api_key_pkey"),
        ("api_key.hash", "api_key_hash_once"),
        ("instance.id", "instance_pkey"),
    ];
    NAMES
        .into_iter()
        .find(|(known, _)| *known == columns)
        .map_or_else(|| columns.to_owned(), |(_, name)| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_that_can_pass_is_unavailable() {
        for code in [
            ffi::SQLITE_FULL,
            ffi::SQLITE_IOERR,
            ffi::SQLITE_IOERR_FSYNC,
            ffi::SQLITE_READONLY,
            ffi::SQLITE_READONLY_DBMOVED,
            ffi::SQLITE_NOMEM,
            ffi::SQLITE_CANTOPEN,
            ffi::SQLITE_ABORT_ROLLBACK,
        ] {
            let kind = failure_kind(ffi::Error::new(code), "");
            assert!(matches!(kind, ErrorKind::Unavailable(_)), "{code}: {kind}");
        }
        for code in [ffi::SQLITE_CORRUPT, ffi::SQLITE_NOTADB] {
            let kind = failure_kind(ffi::Error::new(code), "");
            assert!(matches!(kind, ErrorKind::Broken(_)), "{code}: {kind}");
        }
    }
}
