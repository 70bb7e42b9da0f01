//! Settings that cannot work are refused with one clear line; what may come right by itself is waited for.

use crate::order_workspace::OrderWorkspace;
use crate::program::{self, Program};
use crate::temporal::Namespace;
use crate::{PATIENCE, blocking, database};
use leasehold_testkit::TestTemporal;
use serde_json::json;

/// The one line it ends with.
fn refused(program: &Program) -> String {
    let mut process = program.spawn();
    let status = blocking(|| process.wait(PATIENCE));
    let log = process.log();
    assert!(!status.success(), "{log}");
    let errors: Vec<&str> = log
        .lines()
        .filter(|line| line.starts_with("error: "))
        .collect();
    assert_eq!(errors.len(), 1, "{log}");
    errors[0].to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_cannot_work_are_named() {
    // If it were not refused, it should do no harm.
    let folder = leasehold_testkit::temp_dir();
    let url = format!("sqlite:{}/leasehold.db", folder.path().display());
    let bare = Program::temporal().set("store.url", &url);
    let cases = [
        (bare.clone().flag("--stoer"), "--stoer"),
        (bare.clone().flag("--engine").flag("other"), "other"),
        (bare.clone().flag("--config").flag("none.toml"), "none.toml"),
        (
            bare.clone().set("store.url", "mysql://somewhere/db"),
            "LEASEHOLD__STORE__URL: must be `sqlite:`",
        ),
        (
            bare.clone()
                .set("store.url", "postgres://me@db/x?sslmode=maybe"),
            "LEASEHOLD__STORE__URL: must have an sslmode that is one of",
        ),
        (
            bare.clone().set("dispatch.batch", "10"),
            "did you mean dispatch.batch_size?",
        ),
        (
            bare.clone().set("dispatch.batch_size", "0"),
            "LEASEHOLD__DISPATCH__BATCH_SIZE: must be from 1 to 1000, is 0",
        ),
        (
            bare.clone().set("dispatch.claim_lease", "soon"),
            "is `soon`",
        ),
        (
            bare.clone().set("log.level", "loud"),
            "LEASEHOLD__LOG__LEVEL: must be error, warn,",
        ),
        (
            bare.clone()
                .set("store.url", "sqlite:/proc/nowhere/leasehold.db"),
            "/proc/nowhere",
        ),
    ];
    for (program, named) in cases {
        let line = refused(&program);
        assert!(line.contains(named), "{line:?} does not name {named:?}");
    }
    for (name, value) in [
        ("temporal.address", "not an address"),
        ("temporal.tls_certificate_file", "alone.pem"),
        ("temporal.namespace", " "),
    ] {
        let line = refused(&bare.clone().set(name, value));
        assert!(line.contains("LEASEHOLD__TEMPORAL__"), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_of_the_server_that_cannot_work_are_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let embedded = Program::bare();
    for (program, named) in [
        (
            embedded.clone().set("server.listen", "7777"),
            "LEASEHOLD__SERVER__LISTEN: must be an address with a port",
        ),
        (
            embedded.clone().set("server.listen", &taken),
            taken.as_str(),
        ),
        (
            embedded.clone().set("server.tls_key_file", "key.pem"),
            "must have server.tls_certificate_file beside it: the two go together",
        ),
        (
            embedded
                .clone()
                .set("server.tls_key_file", "key.pem")
                .set("server.tls_certificate_file", "none.pem"),
            "server.tls_certificate_file: none.pem cannot be read",
        ),
        (
            embedded.clone().set("server.header_max_bytes", "100"),
            "LEASEHOLD__SERVER__HEADER_MAX_BYTES: must be from 8192",
        ),
        (
            embedded
                .clone()
                .set("store.tls_ca_file", "none.pem")
                .set("store.url", "postgres://db/x"),
            "store.tls_ca_file: none.pem",
        ),
        (
            embedded.clone().flag("--temporal-address").flag("db:1"),
            "need --engine temporal",
        ),
        (
            embedded.clone().flag("--data-dir").flag("/proc/nowhere"),
            "/proc/nowhere",
        ),
    ] {
        let line = refused(&program);
        assert!(line.contains(named), "{line:?} does not name {named:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_does_not_come_is_waited_for_and_then_named_without_its_password() {
    let database = database::fresh().await;
    let (_, place) = database.url().split_once('@').unwrap();
    let (server, _) = place.split_once('/').unwrap();
    for url in [
        "postgres://me:hush-hush@127.0.0.1:1/db".to_owned(),
        format!("postgres://postgres:hush-hush@{server}/no_such_database"),
    ] {
        let program = Program::temporal()
            .set("store.url", &url)
            .set("store.patience", "1500ms");
        let line = refused(&program);
        assert!(
            line.contains("postgres:***@") || line.contains("me:***@"),
            "{line}"
        );
        assert!(!line.contains("hush-hush"), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_is_missing_is_waited_for() {
    let database = database::fresh().await;
    let server = blocking(TestTemporal::shared);
    // A name that no other test has.
    let name = format!("late-{}", database.name().replace('_', "-"));
    let mut serve = Program::new(database.url(), server.address(), &name).start();
    program::said(&serve, "the engine is unavailable", 1).await;
    let log = serve.log();
    assert!(log.contains(&name), "{log}");
    let site = OrderWorkspace::new(database::store(database.url()), 10).await;
    let id = site.enqueue(json!({"do": "wait"})).await;

    let create = ["operator", "namespace", "create", "--namespace", &name];
    blocking(|| server.cli(&create)).unwrap();
    let request = site.dispatched(id).await;
    assert_eq!(request.dispatch_failures, 0);
    let namespace = Namespace::named(server, &name);
    assert!(namespace.knows(request.execution.unwrap()));
    program::stop(&mut serve);
}
