//! How a command finds its server, its key and its workspace.

use crate::cli_env::{CliEnv, program, run};
use leasehold_testkit::temp_dir;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};

#[test]
fn in_the_servers_folder_and_below_nothing_needs_to_be_said() {
    let ground = CliEnv::new();
    let below = ground.folder().join("a/b");
    fs::create_dir_all(&below).unwrap();
    for folder in [ground.folder(), &below] {
        let said = run(program(folder, &["key", "me", "-o", "json"]), "");
        assert_eq!(said.code, 0, "{said:?}");
        assert!(said.out.contains("\"kind\": \"admin\""), "{said:?}");
    }
}

#[test]
fn elsewhere_the_folder_or_the_address_and_a_key_are_named() {
    let ground = CliEnv::new();
    let elsewhere = temp_dir();
    let folder = ground.folder().join("leasehold-data");
    let folder = folder.to_str().unwrap();
    let key_file = format!("{folder}/admin.key");
    for arguments in [
        vec!["key", "--data-dir", folder, "me"],
        vec!["key", "me", "--data-dir", folder],
        vec![
            "key",
            "me",
            "--server",
            &ground.address(),
            "--key-file",
            &key_file,
        ],
    ] {
        let said = run(program(elsewhere.path(), &arguments), "");
        assert_eq!(said.code, 0, "{arguments:?}: {said:?}");
    }
    let variables = [
        vec![("LEASEHOLD__DATA_DIR", folder.to_owned())],
        vec![
            ("LEASEHOLD_SERVER", ground.address()),
            ("LEASEHOLD_KEY", ground.key()),
        ],
        vec![
            ("LEASEHOLD_SERVER", ground.address()),
            ("LEASEHOLD_KEY_FILE", key_file),
        ],
    ];
    for variables in variables {
        let mut command = program(elsewhere.path(), &["key", "me"]);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        let said = run(command, "");
        assert_eq!(said.code, 0, "{variables:?}: {said:?}");
    }
}

/// Takes whatever comes and answers nothing of use; what came is told when it is over.
fn eavesdropper() -> (SocketAddr, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, heard) = (
        listener.local_addr().unwrap(),
        Arc::new(Mutex::new(Vec::new())),
    );
    let hearing = heard.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 4096];
            let read = stream.read(&mut head).unwrap_or(0);
            hearing.lock().unwrap().extend_from_slice(&head[..read]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
        }
    });
    (address, heard)
}

#[test]
fn a_key_that_was_found_goes_to_its_own_server_and_nowhere_else() {
    let ground = CliEnv::new();
    let (ear, heard) = eavesdropper();
    // An address that is not said to be this machine's, though it leads here.
    let mapped = format!("http://[::ffff:127.0.0.1]:{}", ear.port());
    let said = ground.says(&format!("key me --server {mapped}"));
    assert_eq!(said.code, 4, "{said:?}");
    // Behind a proxy the way to one's own machine does not lead through it.
    let proxy = format!("http://{ear}");
    let said = ground.says_with(
        "key me",
        &[
            ("http_proxy", &proxy),
            ("HTTP_PROXY", &proxy),
            ("all_proxy", &proxy),
        ],
    );
    assert_eq!(said.code, 0, "{said:?}");
    let heard = heard.lock().unwrap().clone();
    let heard = String::from_utf8_lossy(&heard);
    assert!(heard.contains("/healthz"), "nobody was there: {heard}");
    assert!(!heard.contains("lh_admin_"), "{heard}");
}

#[test]
fn a_variable_that_holds_nothing_is_not_taken_for_the_administrators_key() {
    let ground = CliEnv::new();
    for name in ["LEASEHOLD_KEY", "LEASEHOLD_KEY_FILE"] {
        let said = ground.says_with("key me", &[(name, "")]);
        assert_eq!(said.code, 4, "{said:?}");
        assert!(said.err.contains(name), "{said:?}");
    }
}

#[test]
fn a_folder_that_others_can_fill_leads_nowhere() {
    let ground = CliEnv::new();
    let (ear, heard) = eavesdropper();
    let elsewhere = temp_dir();
    let planted = elsewhere.path().join("leasehold-data");
    fs::create_dir(&planted).unwrap();
    fs::write(planted.join("address"), format!("http://{ear}\n")).unwrap();
    fs::set_permissions(&planted, fs::Permissions::from_mode(0o777)).unwrap();
    let mut command = program(elsewhere.path(), &["key", "me"]);
    command.env("LEASEHOLD_KEY", ground.key());
    assert_ne!(run(command, "").code, 0);
    assert!(heard.lock().unwrap().is_empty());
}

#[test]
fn a_workspace_is_named_by_name_or_id_or_by_its_key() {
    let ground = CliEnv::new();
    ground.ok("workspace create acme --plan enterprise --limit 7");
    let acme = ground.ok("workspace get acme -o json");
    let acme: serde_json::Value = serde_json::from_str(&acme).unwrap();
    let id = acme["workspace"]["id"].as_str().unwrap();
    assert_eq!(acme["slots"]["limit"], 7);
    ground.file(
        "pause.json",
        r#"{"nodes": [{"id": "p", "type": "delay", "milliseconds": 1}]}"#,
    );
    ground.ok("definition publish pause pause.json -w acme");
    assert!(ground.ok("definition list -w acme").contains("pause"));
    assert!(
        ground
            .ok(&format!("definition list -w {id}"))
            .contains("pause")
    );
    assert!(!ground.ok("definition list").contains("pause"));
    let of_acme = [("LEASEHOLD_WORKSPACE", "acme")];
    assert!(
        ground
            .says_with("definition list", &of_acme)
            .out
            .contains("pause")
    );
    // A workspace's key needs no name for it, and sees nothing else.
    let key = ground.ok("key create acme --for-workspace acme");
    let with_key = [("LEASEHOLD_KEY", key.as_str())];
    assert!(
        ground
            .says_with("definition list", &with_key)
            .out
            .contains("pause")
    );
    assert!(
        ground
            .says_with("definition list -w acme", &with_key)
            .out
            .contains("pause")
    );
    let enqueued = ground.says_with("request enqueue pause", &with_key);
    let request = enqueued.out.trim();
    let watched = ground.says_with(&format!("request watch {request}"), &with_key);
    assert_eq!(watched.code, 0, "{watched:?}");
    // An administrator finds a request wherever it is.
    let found = ground.ok(&format!("request get {request}"));
    assert!(found.contains("workspace   acme"), "{found}");
    // A workspace that is gone is not found by its name.
    ground.ok("workspace delete acme");
    assert_eq!(ground.says("definition list -w acme").code, 3);
}
