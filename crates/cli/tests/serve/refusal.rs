//! Invalid settings are rejected with one line; conditions that may improve are waited for.

use crate::database::{self, server_of};
use crate::order_workspace::OrderWorkspace;
use crate::program::{self, Program};
use crate::temporal::Namespace;
use crate::{TIMEOUT, blocking};
use leasehold_testkit::{PgBouncer, TestTemporal};
use serde_json::json;

/// Runs the program and returns its error line.
fn error_line(program: &Program) -> String {
    let mut process = program.spawn();
    let status = blocking(|| process.wait(TIMEOUT));
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
async fn invalid_settings_are_named() {
    // Harmless if it were accepted.
    let dir = leasehold_testkit::temp_dir();
    let url = format!("sqlite:{}/leasehold.db", dir.path().display());
    let bare = Program::temporal().set("store.url", &url);
    let cases = [
        (bare.clone().flag("--stoer"), "--stoer"),
        (bare.clone().flag("--engine").flag("other"), "other"),
        (bare.clone().flag("--config").flag("none.toml"), "none.toml"),
        (
            bare.clone().set("store.url", "mysql://somewhere/db"),
            "LEASEHOLD__STORE__URL: must be `sqlite:FILE`",
        ),
        (
            bare.clone()
                .set("store.url", "postgres://me@db/x?sslmode=maybe"),
            "LEASEHOLD__STORE__URL: sslmode must be one of",
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
        let line = error_line(&program);
        assert!(line.contains(named), "{line:?} does not contain {named:?}");
    }
    for (name, value) in [
        ("temporal.address", "not an address"),
        ("temporal.tls_certificate_file", "alone.pem"),
        ("temporal.namespace", " "),
    ] {
        let line = error_line(&bare.clone().set(name, value));
        assert!(line.contains("LEASEHOLD__TEMPORAL__"), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_server_settings_are_named() {
    let in_use = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let in_use = in_use.local_addr().unwrap().to_string();
    let embedded = Program::bare();
    for (program, named) in [
        (
            embedded.clone().set("server.listen", "7777"),
            "LEASEHOLD__SERVER__LISTEN: must be host:port",
        ),
        (
            embedded.clone().set("server.listen", &in_use),
            in_use.as_str(),
        ),
        (
            embedded.clone().set("server.tls_key_file", "key.pem"),
            "must be set together with server.tls_certificate_file",
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
            "store.tls_ca_file: cannot read none.pem",
        ),
        (
            embedded.clone().flag("--temporal-address").flag("db:1"),
            "require --engine temporal",
        ),
        (
            embedded.clone().flag("--data-dir").flag("/proc/nowhere"),
            "/proc/nowhere",
        ),
    ] {
        let line = error_line(&program);
        assert!(line.contains(named), "{line:?} does not contain {named:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pooler_that_the_settings_do_not_name_is_refused() {
    let database = database::fresh().await;
    let server = server_of(database.url());
    let bouncer = blocking(|| PgBouncer::start(server, &[]));
    let program = Program::bare()
        .set(
            "store.url",
            &database.url().replace(server, &bouncer.address()),
        )
        .set("store.patience", "100ms");
    let line = error_line(&program);
    assert!(
        line.contains("set store.pooler = \"transaction\""),
        "{line}"
    );
    let mut doctor = program.command("doctor").spawn();
    assert!(!blocking(|| doctor.wait(TIMEOUT)).success());
    let found = doctor.log();
    assert!(
        found.contains("set store.pooler = \"transaction\""),
        "{found}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn unreachable_database_is_named_without_its_password() {
    let database = database::fresh().await;
    let (_, host) = database.url().split_once('@').unwrap();
    let (server, _) = host.split_once('/').unwrap();
    for url in [
        "postgres://me:hush-hush@127.0.0.1:1/db".to_owned(),
        format!("postgres://postgres:hush-hush@{server}/no_such_database"),
    ] {
        let program = Program::temporal()
            .set("store.url", &url)
            .set("store.patience", "1500ms");
        let line = error_line(&program);
        assert!(
            line.contains("postgres:***@") || line.contains("me:***@"),
            "{line}"
        );
        assert!(!line.contains("hush-hush"), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_namespace_is_waited_for() {
    let database = database::fresh().await;
    let server = blocking(TestTemporal::shared);
    // A unique name.
    let name = format!("late-{}", database.name().replace('_', "-"));
    let mut serve = Program::new(database.url(), server.address(), &name).start();
    program::wait_for_lines(&serve, "engine unavailable; dispatch paused", 1).await;
    let log = serve.log();
    assert!(log.contains(&name), "{log}");
    let workspace = OrderWorkspace::new(database::store(database.url()), 10).await;
    let id = workspace.enqueue(json!({"do": "wait"})).await;

    let create = ["operator", "namespace", "create", "--namespace", &name];
    blocking(|| server.cli(&create)).unwrap();
    let request = workspace.dispatched(id).await;
    assert_eq!(request.dispatch_failures, 0);
    let namespace = Namespace::named(server, &name);
    assert!(namespace.knows(request.execution.unwrap()));
    program::stop(&mut serve);
}

#[tokio::test(flavor = "multi_thread")]
async fn start_in_another_namespace_is_refused_with_open_executions() {
    let database = database::fresh().await;
    let (first, second) = (Namespace::fresh(), Namespace::fresh());
    let program = |namespace: &Namespace<'_>| {
        Program::new(database.url(), namespace.address(), &namespace.name)
    };
    let mut serve = program(&first).start();
    let workspace = OrderWorkspace::new(database::store(database.url()), 10).await;
    let id = workspace.enqueue(json!({"do": "wait"})).await;
    let open = workspace.dispatched(id).await.execution.unwrap();
    program::stop(&mut serve);
    let line = error_line(&program(&second));
    for named in [
        "cannot start with this engine",
        &format!("namespace {} with id", first.name),
        &format!("namespace {} with id", second.name),
        "start with the settings of the recorded engine",
    ] {
        assert!(line.contains(named), "{line:?} does not contain {named:?}");
    }
    let mut serve = program(&first).start();
    assert!(first.knows(open) && !second.knows(open));
    let again = workspace.enqueue(json!({"do": "wait"})).await;
    workspace.dispatched(again).await;
    assert_eq!(workspace.dispatched(id).await.execution, Some(open));
    program::stop(&mut serve);
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_installation_adopts_a_new_namespace() {
    let database = database::fresh().await;
    let (first, second) = (Namespace::fresh(), Namespace::fresh());
    let program = |namespace: &Namespace<'_>| {
        Program::new(database.url(), namespace.address(), &namespace.name)
    };
    let mut serve = program(&first).start();
    program::stop(&mut serve);
    let mut serve = program(&second).start();
    let workspace = OrderWorkspace::new(database::store(database.url()), 10).await;
    let id = workspace.enqueue(json!({"do": "wait"})).await;
    let open = workspace.dispatched(id).await.execution.unwrap();
    assert!(second.knows(open));
    program::stop(&mut serve);
    let log = serve.log();
    assert!(log.contains("engine replaced"), "{log}");
    let line = error_line(&program(&first));
    assert!(line.contains("cannot start with this engine"), "{line}");
}
