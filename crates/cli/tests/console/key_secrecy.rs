//! A key goes only to the server that it is for: not to an address in a planted data directory, and not to another process on the server's port.

use crate::cli_env::{CliEnv, CommandOutput, program, run, start};
use crate::recorder::Recorder;
use leasehold_core::key::{KeyScope, Secret};
use leasehold_testkit::temp_dir;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const COMMANDS: [&str; 4] = [
    "key me",
    "workspace list --data-dir leasehold-data",
    "top --once",
    "job work letters --once -- cat",
];

fn secret(byte: u8) -> String {
    let secret = Secret::new(&KeyScope::Admin, &[byte; 32]);
    secret.reveal().to_owned()
}

fn run_in(dir: &Path, words: &str, variables: &[(&str, &str)]) -> CommandOutput {
    let words: Vec<&str> = words.split(' ').collect();
    let mut command = program(dir, &words);
    command.envs(variables.iter().copied());
    run(command, "")
}

/// Runs the commands with and without a key in the environment: each error names the next step, and none connects to the recorder.
fn assert_nothing_is_sent(dir: &Path, recorder: &Recorder, key_file: &Path) {
    let key = secret(1);
    fs::write(key_file, &key).unwrap();
    let key_file = key_file.to_str().unwrap();
    for words in COMMANDS {
        for variables in [
            &[][..],
            &[("LEASEHOLD_KEY", key.as_str())],
            &[("LEASEHOLD_KEY_FILE", key_file)],
        ] {
            let output = run_in(dir, words, variables);
            let code = if variables.is_empty() { 6 } else { 2 };
            assert_eq!(output.code, code, "{words} {variables:?}: {output:?}");
            assert!(output.err.contains("--server"), "{output:?}");
            assert!(!output.err.contains("lh_admin_"), "{output:?}");
        }
    }
    let recording = recorder.recording();
    assert_eq!(recording.connections, 0, "{recording:?}");
    // The recorder sees a key that is meant for it.
    let url = recorder.url();
    let variables = [("LEASEHOLD_SERVER", url.as_str()), ("LEASEHOLD_KEY", &key)];
    run_in(dir, "key me", &variables);
    assert!(recorder.recording().text.contains(&key));
}

#[test]
fn planted_data_directory_gets_no_key() {
    let recorder = Recorder::listen("127.0.0.1:0");
    let clone = temp_dir();
    let planted = clone.path().join("leasehold-data");
    fs::create_dir(&planted).unwrap();
    fs::set_permissions(&planted, Permissions::from_mode(0o755)).unwrap();
    fs::write(planted.join("address"), format!("{}\n", recorder.url())).unwrap();
    fs::write(planted.join("admin.key"), secret(2)).unwrap();
    assert_nothing_is_sent(clone.path(), &recorder, &clone.path().join("key"));
}

#[test]
fn squatted_port_gets_no_key() {
    let mut env = CliEnv::on_own_address();
    let address = env.address();
    // Killed, so that the address and the socket stay in the data directory.
    env.kill();
    assert_eq!(env.address(), address);
    assert!(env.dir().join("leasehold-data/leasehold.sock").exists());
    let recorder = Recorder::listen(address.trim_start_matches("http://"));
    assert_eq!(recorder.url(), address);
    let output = env.run("key me");
    assert!(
        output.err.contains("no server runs on the data directory"),
        "{output:?}"
    );
    assert_nothing_is_sent(env.dir(), &recorder, &env.dir().join("key"));
    // A server on another port replaces the socket.
    let _serve = start(env.dir(), "127.0.0.1:0", &[]);
    assert_eq!(env.run("key me").code, 0);
}

#[test]
fn commands_use_the_socket_whatever_the_address_file_says() {
    let env = CliEnv::new();
    let recorder = Recorder::listen("127.0.0.1:0");
    let data = env.dir().join("leasehold-data");
    fs::write(data.join("address"), recorder.url()).unwrap();
    let proxy = recorder.url();
    let proxies = ["http_proxy", "HTTP_PROXY", "all_proxy"].map(|name| (name, proxy.as_str()));
    assert_eq!(env.run_with_env("key me", &proxies).code, 0);
    // The doctor asks the server that owns the store.
    let doctor = env.run("doctor");
    assert_eq!(doctor.code, 0, "{doctor:?}");
    assert!(doctor.out.contains("asked that server"), "{doctor:?}");
    let recording = recorder.recording();
    assert_eq!(recording.connections, 0, "{recording:?}");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&data.join("leasehold.sock")), 0o600);
    assert_eq!(mode(&data), 0o700);
}

#[test]
fn key_of_the_data_directory_does_not_go_to_a_passed_address() {
    let env = CliEnv::new();
    let recorder = Recorder::listen("127.0.0.1:0");
    let mapped = format!("http://[::ffff:127.0.0.1]:{}", recorder.port());
    for server in [recorder.url(), mapped] {
        let output = env.run(&format!("key me --server {server}"));
        assert_eq!(output.code, 4, "{output:?}");
        assert!(output.err.contains("no API key for"), "{output:?}");
    }
    let text = recorder.recording().text;
    assert!(text.contains("/healthz"), "no call was received: {text}");
    assert!(!text.contains("lh_admin_"), "{text}");
}

#[test]
fn world_writable_data_directory_is_not_used() {
    let env = CliEnv::new();
    let data = env.dir().join("leasehold-data");
    fs::set_permissions(&data, Permissions::from_mode(0o777)).unwrap();
    assert_eq!(env.run("key me").code, 2);
    let named = env.run("key me --data-dir leasehold-data");
    assert_eq!(named.code, 4, "{named:?}");
    assert!(named.err.contains("chmod go-w"), "{named:?}");
}

#[test]
fn server_without_a_socket_is_reached_by_its_address() {
    let env = CliEnv::with_settings(&[("LEASEHOLD__SERVER__LOCAL_SOCKET", "false")]);
    assert!(!env.dir().join("leasehold-data/leasehold.sock").exists());
    let output = env.run("key me");
    assert_eq!(output.code, 6, "{output:?}");
    assert!(output.err.contains("it has no socket"), "{output:?}");
    assert_eq!(env.run_with_key("key me", &env.key()).code, 0);
}

#[test]
fn data_directory_with_a_long_path_is_used() {
    let dir = temp_dir();
    let deep = dir.path().join("d".repeat(100)).join("e".repeat(100));
    fs::create_dir_all(&deep).unwrap();
    let _serve = start(&deep, "127.0.0.1:0", &[]);
    let output = run_in(&deep, "key me", &[]);
    assert_eq!(output.code, 0, "{output:?}");
}

#[test]
fn last_administrator_key_is_revoked_only_with_force() {
    let env = CliEnv::new();
    let key: serde_json::Value = serde_json::from_str(&env.ok("key me -o json")).unwrap();
    let id = key["id"].as_str().unwrap();
    let refused = env.run(&format!("key revoke {id}"));
    assert_eq!(refused.code, 5, "{refused:?}");
    for named in ["key create NAME --admin", "--force", "leasehold admin-key"] {
        assert!(refused.err.contains(named), "{named}: {refused:?}");
    }
    assert_eq!(env.run("key me").code, 0);
    let revoked = env.ok(&format!("key revoke {id} --force"));
    assert!(revoked.contains("revoked key"), "{revoked}");
    assert_eq!(env.run("key me").code, 4);
}
