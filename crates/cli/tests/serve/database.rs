//! A migrated PostgreSQL database for each test, and a store on it beside the one of the process under test.

pub(crate) use leasehold_testbed::postgres::{database as fresh, server_of, store};
