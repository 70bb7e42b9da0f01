//! Rules for the files of `sql/functions/`: their names, and that a changed function has a higher release. `functions.txt` lists the
//! releases; `cargo xtask schema` updates it unless a rule is violated.
#![allow(clippy::unwrap_used)]

use crate::support;

use leasehold_store_conformance::{Fixture, clock};
use leasehold_store_postgres::functions;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

const LIST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/functions.txt");
const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/sql/functions");
const HEAD: &str = "# Name, release, checksum and signature of every SQL function. Written by `cargo xtask schema`.\n";

/// A line of `functions.txt`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Listed {
    name: String,
    release: u32,
    checksum: String,
    signature: String,
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            release,
            checksum,
            signature,
        } = self;
        write!(f, "{name} {release} {checksum} {signature}")
    }
}

fn parse(text: &str) -> Vec<Listed> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let parsed = lines.map(|line| {
        let mut parts = line.splitn(4, ' ');
        let mut part = || parts.next().unwrap_or_default().to_owned();
        Listed {
            name: part(),
            release: part().parse().unwrap(),
            checksum: part(),
            signature: part(),
        }
    });
    parsed.collect()
}

/// Returns the rules that a change from `listed` to `now` violates.
fn violations(listed: &[Listed], now: &[Listed]) -> Vec<String> {
    let broken = listed.iter().filter_map(|old| {
        let name = &old.name;
        let Some(new) = now.iter().find(|new| new.name == *name) else {
            return Some(format!(
                "{name} has no file: keep a function for one release after its replacement; if a migration drops it, delete its line in functions.txt"
            ));
        };
        if new.signature != old.signature {
            return Some(format!(
                "{name} has a different signature: keep it unchanged, and give the new function a new name"
            ));
        }
        let raised = new.release > old.release;
        let same = new.release == old.release && new.checksum == old.checksum;
        (!raised && !same).then(|| {
            format!(
                "{name} was changed: raise its release above {} (if no released program has that release, delete its line in functions.txt instead)",
                old.release
            )
        })
    });
    broken.collect()
}

/// Returns the functions of this program, with signatures from a migrated database.
async fn current() -> Vec<Listed> {
    let database = support::database().await;
    let client = support::raw::connect(&database).await;
    let rows = client
        .query(include_str!("sql/function_signatures.sql"), &[])
        .await
        .unwrap();
    let count = rows.len();
    let mut signatures: BTreeMap<String, String> =
        rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(signatures.len(), count, "a function is overloaded");
    let all = functions().map(|function| Listed {
        name: function.name.to_owned(),
        release: function.release,
        checksum: format!("{:016x}", function.checksum().cast_unsigned()),
        signature: signatures.remove(function.name).expect(function.name),
    });
    let mut all: Vec<Listed> = all.collect();
    assert_eq!(signatures, BTreeMap::new(), "functions without a file");
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

#[tokio::test]
async fn changed_function_has_a_higher_release() {
    let kept = std::fs::read_to_string(LIST).unwrap_or_default();
    let now = current().await;
    assert_eq!(violations(&parse(&kept), &now), [""; 0]);
    let lines: String = now.iter().map(|one| format!("{one}\n")).collect();
    let text = format!("{HEAD}{lines}");
    if std::env::var_os("LEASEHOLD_BLESS").is_some() {
        std::fs::write(LIST, &text).unwrap();
        return;
    }
    assert_eq!(
        kept, text,
        "functions.txt is out of date: run `cargo xtask schema`"
    );
}

#[test]
fn changed_body_without_a_higher_release_is_detected() {
    let one = |release, checksum: &str, signature: &str| Listed {
        name: "leasehold_fold".to_owned(),
        release,
        checksum: checksum.to_owned(),
        signature: signature.to_owned(),
    };
    let listed = [one(2, "a", "() bigint")];
    let found = |now: Listed| violations(&listed, &[now]).concat();
    assert_eq!(found(one(2, "a", "() bigint")), "");
    assert_eq!(found(one(3, "b", "() bigint")), "");
    assert!(found(one(2, "b", "() bigint")).contains("raise its release above 2"));
    assert!(found(one(1, "b", "() bigint")).contains("raise its release above 2"));
    assert!(found(one(1, "a", "() bigint")).contains("raise its release above 2"));
    assert!(found(one(3, "b", "(n integer) bigint")).contains("a new name"));
    assert!(violations(&listed, &[])[0].contains("has no file"));
    let text = format!("{HEAD}{}\n", listed[0]);
    assert_eq!(parse(&text), listed);
}

#[test]
fn every_file_is_applied() {
    let entries = std::fs::read_dir(DIRECTORY).unwrap();
    let mut files: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort_unstable();
    let mut names: Vec<String> = functions().map(|f| format!("{}.sql", f.name)).collect();
    names.sort_unstable();
    assert_eq!(files, names);
}

#[tokio::test]
async fn every_body_is_valid_once_the_tables_exist() {
    let database = support::database().await;
    let client = support::raw::connect(&database).await;
    client
        .batch_execute(include_str!("sql/function_validate.sql"))
        .await
        .unwrap();
}

#[tokio::test]
async fn public_functions_take_options_pin_search_path_and_need_grant() {
    let database = support::database().await;
    let client = support::raw::connect(&database).await;
    let rows = client
        .query(include_str!("sql/function_public.sql"), &[])
        .await
        .unwrap();
    let names: Vec<String> = rows.iter().map(|row| row.get("name")).collect();
    assert_eq!(names, ["leasehold_enqueue", "leasehold_job_enqueue"]);
    for row in rows {
        let (name, arguments): (String, String) = (row.get("name"), row.get("arguments"));
        let last = ", options jsonb DEFAULT NULL::jsonb";
        assert!(arguments.ends_with(last), "{name}({arguments})");
        assert!(row.get::<_, bool>("pinned"), "{name}");
        assert!(!row.get::<_, bool>("callable"), "{name}");
    }
}

/// The overloads match calls with untyped literals, arrays or mixed number types better than Leasehold's own functions.
#[tokio::test]
async fn overload_of_another_role_is_not_called() {
    let database = support::database().await;
    let clock = clock();
    let fixture = Fixture::new(Arc::new(support::store(&database, clock.clone())), clock);
    let workspace = fixture.workspace(5).await;
    let running = fixture.enqueue_running(&workspace).await;
    let client = support::raw::connect(&database).await;
    client
        .batch_execute(include_str!("sql/function_overloads.sql"))
        .await
        .unwrap();
    let enqueue = async |options: Value| {
        let sql = include_str!("sql/enqueue_everything.sql");
        let (workspace, definition) = (workspace.workspace.0, workspace.definition.0);
        let outcome = client
            .query_one(sql, &[&workspace, &definition, &options])
            .await;
        let job = outcome.map(|row| row.get::<_, i64>("job"));
        job.map_err(|error| error.as_db_error().unwrap().message().to_owned())
    };
    enqueue(json!({})).await.unwrap();
    let refused = enqueue(json!({"colour": "red"})).await.unwrap_err();
    assert_eq!(refused, r#"leasehold_enqueue: unknown option "colour""#);

    for sql in [
        include_str!("sql/execution_end.sql"),
        include_str!("sql/execution_run_again.sql"),
    ] {
        client.execute(sql, &[&running.execution.0]).await.unwrap();
    }
    client
        .batch_execute(include_str!("sql/rebuild.sql"))
        .await
        .unwrap();
}
