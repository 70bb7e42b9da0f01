//! The edges of `leasehold serve`: what it finds taken, what it leaves for commands to find it by, what it tells the system.

use crate::program::{Folder, PATIENCE};
use leasehold_testkit::{HttpConnection, Process};
use std::net::TcpListener;
use std::os::unix::net::UnixDatagram;

const RUNNING: &str = "leasehold is running";

fn serve(folder: &Folder) -> Process {
    let serve = folder.spawn(&["serve", "--listen", "127.0.0.1:0"]);
    serve.wait_for_line(PATIENCE, |line| line.contains(RUNNING));
    serve
}

fn end(mut serve: Process) {
    serve.terminate();
    let status = serve.wait(PATIENCE);
    assert!(status.success(), "{}", serve.log());
}

/// What it tells the system next.
fn told(socket: &UnixDatagram) -> String {
    let mut heard = [0; 256];
    let length = socket.recv(&mut heard).unwrap();
    String::from_utf8(heard[..length].to_vec()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn it_says_where_it_listens_and_tells_the_system_until_it_ends() {
    let folder = Folder::new();
    let path = folder.path("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let folder = folder.variable("NOTIFY_SOCKET", path.to_str().unwrap());
    let serve = serve(&folder);
    assert_eq!(told(&socket), "READY=1\n");
    // It was told after it listened, and after the file was there.
    let address = folder.path("leasehold-data/address");
    let url = std::fs::read_to_string(&address).unwrap();
    let place = url.strip_prefix("http://").unwrap().trim_end();
    let key = std::fs::read_to_string(folder.path("leasehold-data/admin.key")).unwrap();
    let mut connection = HttpConnection::open(place.parse().unwrap()).await.unwrap();
    let answer = connection.call("GET", "/v1/workspaces", key.trim(), None);
    let answer = answer.await.unwrap().text();
    let list: serde_json::Value = serde_json::from_str(&answer).unwrap();
    // Somebody's first start has a workspace to begin with.
    assert_eq!(list["items"][0]["name"], "default", "{list}");
    assert_eq!(list["items"][0]["plan"], "PRO", "{list}");
    assert_eq!(list["items"].as_array().unwrap().len(), 1, "{list}");
    tokio::task::block_in_place(|| end(serve));
    assert_eq!(told(&socket), "STOPPING=1\n");
    assert!(!address.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_is_taken_is_named_with_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = Folder::new();
    let ended = folder.run(&["serve", "--listen", &address]);
    assert_eq!(ended.code, 8, "{ended:?}");
    assert_eq!(
        ended.error(),
        format!("{address} is taken by another process; stop it, or choose another with --listen")
    );
    let ended = folder.run(&["serve", "--listen", "192.0.2.1:1"]);
    assert_eq!(ended.code, 2, "{ended:?}");
    assert!(
        ended.error().starts_with("cannot listen on 192.0.2.1:1: "),
        "{ended:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_folder_of_another_process_is_named_with_that_process() {
    let folder = Folder::new();
    let serve = serve(&folder);
    let owner = format!("is in use by process {}", serve.pid());
    for arguments in [
        &["serve", "--listen", "127.0.0.1:0"][..],
        &["admin-key"],
        &["migrate", "status"],
    ] {
        let ended = folder.run(arguments);
        assert_eq!(ended.code, 8, "{ended:?}");
        assert!(ended.error().contains(&owner), "{ended:?}");
    }
    tokio::task::block_in_place(|| end(serve));
}

#[test]
fn a_store_that_does_not_answer_is_worth_another_try() {
    let folder = Folder::new().variable("LEASEHOLD__STORE__PATIENCE", "0s");
    let store = "postgres://me:hush@127.0.0.1:1/x";
    for arguments in [
        &["serve", "--store", store][..],
        &["migrate", "up", "--store", store],
        &["migrate", "status", "--store", store],
    ] {
        let ended = folder.run(arguments);
        assert_eq!(ended.code, 6, "{ended:?}");
        let line = ended.error();
        assert!(
            line.starts_with("the store postgres://me:***@127.0.0.1:1/x does not answer: "),
            "{line}"
        );
        assert!(
            line.ends_with("; start it, or name another with --store"),
            "{line}"
        );
        assert!(!ended.stderr.contains("hush"), "{ended:?}");
    }
}

#[test]
fn a_folder_or_a_file_that_cannot_be_used_is_a_wrong_value() {
    let folder = Folder::new();
    folder.write("text", "no database");
    for (flag, value, part) in [
        (
            "--data-dir",
            "/proc/nowhere",
            "the folder /proc/nowhere cannot be made",
        ),
        ("--data-dir", "text", "text"),
        ("--store", "sqlite:.", "cannot be opened"),
    ] {
        let ended = folder.run(&["serve", flag, value]);
        assert_eq!(ended.code, 2, "{ended:?}");
        assert!(ended.error().contains(part), "{ended:?}");
    }
}

#[test]
fn a_worker_without_a_key_or_with_something_else_for_one_is_denied() {
    let ended = Folder::new().run(&["worker"]);
    assert_eq!(ended.code, 4, "{ended:?}");
    assert!(ended.error().starts_with("there is no key: "), "{ended:?}");
    let folder = Folder::new().variable("LEASEHOLD_KEY", "hush");
    let ended = folder.run(&["worker"]);
    assert_eq!(ended.code, 4, "{ended:?}");
    assert!(ended.error().contains("no key of Leasehold's"), "{ended:?}");
    let ended = Folder::new().run(&["worker", "--key-file", "nowhere"]);
    assert_eq!(ended.code, 2, "{ended:?}");
}
