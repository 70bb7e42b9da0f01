//! Real servers for tests: throwaway PostgreSQL, PgBouncer and Temporal, child processes, a fault proxy, bounded waits, captured logs, a fuzzer.
//!
//! This crate depends on none of Leasehold's own crates, so that each of them can use it in its tests. It is for tests
//! only: a failure panics with a message that says what to do.
//!
//! ```no_run
//! # async fn test() {
//! use leasehold_testkit::TestPostgres;
//!
//! let server = TestPostgres::shared();
//! let template = server
//!     .template_database("leasehold_4f1c", |url| async move { migrate(&url).await })
//!     .await;
//! let database = server.fresh_database(Some(&template)).await;
//! // … connect to database.url(); dropping `database` drops the database.
//! # }
//! # async fn migrate(_url: &str) {}
//! ```
//!
//! Every server started here ends with the process that started it, even if that process is killed: a watchdog shell
//! waits on a pipe, and stops the server and removes its directory when the pipe closes.

mod cluster;
mod example;
mod faketime;
mod frozen;
mod fuzz;
mod linters;
pub mod log_events;
mod os_user;
mod pgbouncer;
mod port;
mod postgres_package;
mod process;
mod programs;
mod promtool;
mod python;
mod replica;
mod server;
mod server_process;
mod size;
mod snapshot;
mod temp_root;
mod temporal;
mod tools;
mod unique;
mod upgrade;
mod wait;

#[cfg(feature = "logs")]
pub mod logs;

#[cfg(feature = "database")]
mod database;
#[cfg(feature = "database")]
mod failover;
#[cfg(feature = "database")]
mod http;
#[cfg(feature = "database")]
mod http2;
#[cfg(feature = "database")]
mod postgres;
#[cfg(feature = "database")]
mod proxy;
#[cfg(feature = "database")]
mod reuse;
#[cfg(feature = "database")]
mod small_disk;
#[cfg(feature = "database")]
mod statement;
#[cfg(feature = "database")]
mod temp_dir;
#[cfg(feature = "database")]
mod template;
#[cfg(feature = "traces")]
mod traces;

pub use cluster::{Cluster, SERVER_VARIABLE, fresh_cluster};
pub use example::example_program;
pub use faketime::{FAKETIME_PACKAGE, faketime_library, skew_clock};
pub use frozen::FrozenServer;
pub use fuzz::{FUZZ_SECONDS_VARIABLE, FUZZ_SEED_VARIABLE, Fuzzer};
pub use linters::{
    CHECK_JSONSCHEMA, HADOLINT, HELM, KUBERNETES_VALIDATE, LINTERS, Linter, SHELLCHECK, YAMLLINT,
    yaml_as_json,
};
pub use pgbouncer::{PGBOUNCER_PACKAGE, POOLER_VARIABLE, PgBouncer, pgbouncer_version};
pub use postgres_package::{POSTGRES_VERSIONS, PostgresPackage};
pub use process::Process;
pub use programs::{
    POSTGRES_BIN_VARIABLE, can_run_postgres, debian_postgres, postgres_client, postgres_programs,
    postgres_version,
};
pub use promtool::{PROMTOOL_PACKAGE, check_metrics, promtool, promtool_version};
pub use python::python_worker;
pub use replica::SavedCluster;
pub use size::{FULL_VARIABLE, sized};
pub use snapshot::assert_snapshot_file;
pub use temp_root::temp_root;
pub use temporal::{DevServerOptions, TEMPORAL_VARIABLE, TestTemporal};
pub use tools::{
    PYTHON_PATH_VARIABLE, PythonPackage, SCHEMATHESIS, SCHEMATHESIS_VARIABLE, TEMPORAL_CLI,
    TEMPORAL_CLI_VARIABLE, TEMPORAL_PYTHON_SDK, schemathesis_path, temporal_cli,
};
pub use wait::wait_until;

#[cfg(feature = "database")]
pub use database::TestDatabase;
#[cfg(feature = "database")]
pub use failover::FailoverPair;
#[cfg(feature = "database")]
pub use http::{HttpConnection, HttpResponse};
#[cfg(feature = "database")]
pub use http2::UnreadHttp2;
#[cfg(feature = "database")]
pub use postgres::TestPostgres;
#[cfg(feature = "database")]
pub use proxy::{FaultProxy, Traffic};
#[cfg(feature = "database")]
pub use small_disk::SmallDisk;
#[cfg(feature = "database")]
pub use temp_dir::temp_dir;
#[cfg(feature = "database")]
pub use tempfile::TempDir;
#[cfg(feature = "traces")]
pub use traces::{OtlpReceiver, ReceivedSpan};
#[cfg(feature = "database")]
pub use wait::eventually;
