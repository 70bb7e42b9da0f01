//! A plain connection, for manual statements.

use leasehold_testkit::TestDatabase;
use tokio_postgres::{Client, NoTls};

/// Connects; the connection ends with the client.
pub(crate) async fn connect(database: &TestDatabase) -> Client {
    let (client, connection) = tokio_postgres::connect(&database.url_in("leasehold"), NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    client
}

/// Returns the constraint that rejected a statement.
#[allow(dead_code, reason = "not every test expects a rejection")]
pub(crate) fn rejected_by<T: std::fmt::Debug>(outcome: Result<T, tokio_postgres::Error>) -> String {
    let error = outcome.expect_err("the database should reject the statement");
    let error = error
        .as_db_error()
        .expect("an error of the database")
        .clone();
    error
        .constraint()
        .unwrap_or_else(|| error.code().code())
        .to_owned()
}
