//! How a command finds its server, key and workspace.

use crate::cli_env::{CliEnv, program, run};
use leasehold_testkit::temp_dir;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};

#[test]
fn no_flags_needed_in_the_servers_directory_and_below() {
    let env = CliEnv::new();
    let below = env.dir().join("a/b");
    fs::create_dir_all(&below).unwrap();
    for dir in [env.dir(), &below] {
        let output = run(program(dir, &["key", "me", "-o", "json"]), "");
        assert_eq!(output.code, 0, "{output:?}");
        assert!(output.out.contains("\"kind\": \"admin\""), "{output:?}");
    }
}

#[test]
fn flags_and_variables_name_server_and_key() {
    let env = CliEnv::new();
    let elsewhere = temp_dir();
    let dir = env.dir().join("leasehold-data");
    let dir = dir.to_str().unwrap();
    let key_file = format!("{dir}/admin.key");
    for arguments in [
        vec!["key", "--data-dir", dir, "me"],
        vec!["key", "me", "--data-dir", dir],
        vec![
            "key",
            "me",
            "--server",
            &env.address(),
            "--key-file",
            &key_file,
        ],
    ] {
        let output = run(program(elsewhere.path(), &arguments), "");
        assert_eq!(output.code, 0, "{arguments:?}: {output:?}");
    }
    let variables = [
        vec![("LEASEHOLD__DATA_DIR", dir.to_owned())],
        vec![
            ("LEASEHOLD_SERVER", env.address()),
            ("LEASEHOLD_KEY", env.key()),
        ],
        vec![
            ("LEASEHOLD_SERVER", env.address()),
            ("LEASEHOLD_KEY_FILE", key_file),
        ],
    ];
    for variables in variables {
        let mut command = program(elsewhere.path(), &["key", "me"]);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        let output = run(command, "");
        assert_eq!(output.code, 0, "{variables:?}: {output:?}");
    }
}

/// A server that records what it receives.
fn recording_server() -> (SocketAddr, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, received) = (
        listener.local_addr().unwrap(),
        Arc::new(Mutex::new(Vec::new())),
    );
    let sink = received.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 4096];
            let read = stream.read(&mut head).unwrap_or(0);
            sink.lock().unwrap().extend_from_slice(&head[..read]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
        }
    });
    (address, received)
}

#[test]
fn local_key_is_sent_only_to_its_own_server() {
    let env = CliEnv::new();
    let (recorder, received) = recording_server();
    // A loopback address in a form that does not count as local.
    let mapped = format!("http://[::ffff:127.0.0.1]:{}", recorder.port());
    let output = env.run(&format!("key me --server {mapped}"));
    assert_eq!(output.code, 4, "{output:?}");
    // Local connections bypass the proxy.
    let proxy = format!("http://{recorder}");
    let output = env.run_with_env(
        "key me",
        &[
            ("http_proxy", &proxy),
            ("HTTP_PROXY", &proxy),
            ("all_proxy", &proxy),
        ],
    );
    assert_eq!(output.code, 0, "{output:?}");
    let received = received.lock().unwrap().clone();
    let received = String::from_utf8_lossy(&received);
    assert!(
        received.contains("/healthz"),
        "no call was received: {received}"
    );
    assert!(!received.contains("lh_admin_"), "{received}");
}

#[test]
fn empty_key_variable_is_an_error() {
    let env = CliEnv::new();
    for name in ["LEASEHOLD_KEY", "LEASEHOLD_KEY_FILE"] {
        let output = env.run_with_env("key me", &[(name, "")]);
        assert_eq!(output.code, 4, "{output:?}");
        assert!(output.err.contains(name), "{output:?}");
    }
}

#[test]
fn world_writable_data_directory_is_ignored() {
    let env = CliEnv::new();
    let (recorder, received) = recording_server();
    let elsewhere = temp_dir();
    let planted = elsewhere.path().join("leasehold-data");
    fs::create_dir(&planted).unwrap();
    fs::write(planted.join("address"), format!("http://{recorder}\n")).unwrap();
    fs::set_permissions(&planted, fs::Permissions::from_mode(0o777)).unwrap();
    let mut command = program(elsewhere.path(), &["key", "me"]);
    command.env("LEASEHOLD_KEY", env.key());
    assert_ne!(run(command, "").code, 0);
    assert!(received.lock().unwrap().is_empty());
}

#[test]
fn workspace_is_found_by_name_id_or_key() {
    let env = CliEnv::new();
    env.ok("workspace create acme --plan enterprise --limit 7");
    let acme = env.ok("workspace get acme -o json");
    let acme: serde_json::Value = serde_json::from_str(&acme).unwrap();
    let id = acme["workspace"]["id"].as_str().unwrap();
    assert_eq!(acme["slots"]["limit"], 7);
    env.file(
        "pause.json",
        r#"{"nodes": [{"id": "p", "type": "delay", "milliseconds": 1}]}"#,
    );
    env.ok("definition publish pause pause.json -w acme");
    assert!(env.ok("definition list -w acme").contains("pause"));
    assert!(
        env.ok(&format!("definition list -w {id}"))
            .contains("pause")
    );
    assert!(!env.ok("definition list").contains("pause"));
    let with_workspace = [("LEASEHOLD_WORKSPACE", "acme")];
    assert!(
        env.run_with_env("definition list", &with_workspace)
            .out
            .contains("pause")
    );
    // A workspace key implies its workspace and sees nothing else.
    let key = env.ok("key create acme --for-workspace acme");
    let with_key = [("LEASEHOLD_KEY", key.as_str())];
    assert!(
        env.run_with_env("definition list", &with_key)
            .out
            .contains("pause")
    );
    assert!(
        env.run_with_env("definition list -w acme", &with_key)
            .out
            .contains("pause")
    );
    let enqueued = env.run_with_env("request enqueue pause", &with_key);
    let request = enqueued.out.trim();
    let watched = env.run_with_env(&format!("request watch {request}"), &with_key);
    assert_eq!(watched.code, 0, "{watched:?}");
    // An administrator need not name the workspace of a request.
    let found = env.ok(&format!("request get {request}"));
    assert!(found.contains("workspace   acme"), "{found}");
    // A deleted workspace is not found by name.
    env.ok("workspace delete acme");
    assert_eq!(env.run("definition list -w acme").code, 3);
}
