//! Which data directories, sockets and key files a command trusts.
#![allow(clippy::unwrap_used)]

use super::*;
use leasehold_core::key::KeyScope;
use leasehold_testkit::TempDir;
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn failure(dir: &Path) -> Failure {
    local_client(dir, ClientOptions::default()).unwrap_err()
}

/// A data directory with a key and a socket.
fn complete_dir() -> TempDir {
    let dir = leasehold_testkit::temp_dir();
    let key = Secret::new(&KeyScope::Admin, &[7; 32]);
    fs::write(dir.path().join(KEY_FILE), key.reveal()).unwrap();
    set_mode(&dir.path().join(KEY_FILE), 0o600);
    let socket = dir.path().join(SOCKET_FILE);
    UnixListener::bind(&socket).unwrap();
    set_mode(&socket, 0o600);
    dir
}

#[test]
fn directory_with_socket_and_key_is_used() {
    let dir = complete_dir();
    local_client(dir.path(), ClientOptions::default()).unwrap();
}

#[test]
fn directory_without_socket_has_no_server() {
    let dir = complete_dir();
    fs::remove_file(dir.path().join(SOCKET_FILE)).unwrap();
    // An address is no reason to connect anywhere.
    fs::write(dir.path().join("address"), "http://127.0.0.1:1\n").unwrap();
    let error = failure(dir.path());
    assert_eq!(error.exit, Exit::Unavailable, "{error}");
    assert!(error.message.contains("leasehold serve"), "{error}");
}

#[test]
fn missing_and_empty_keys_are_named() {
    let dir = complete_dir();
    let file = dir.path().join(KEY_FILE);
    for (text, named) in [
        (Some("\n"), "no administrator key"),
        (Some("lh_admin_x"), "invalid API key"),
        (None, "no administrator key"),
    ] {
        match text {
            Some(text) => fs::write(&file, text).unwrap(),
            None => fs::remove_file(&file).unwrap(),
        }
        let error = failure(dir.path());
        assert_eq!(error.exit, Exit::Denied, "{error}");
        assert!(error.message.contains(named), "{error}");
    }
}

#[test]
fn files_that_others_can_write_are_refused() {
    for name in [SOCKET_FILE, KEY_FILE] {
        let dir = complete_dir();
        for mode in [0o620, 0o602] {
            set_mode(&dir.path().join(name), mode);
            let error = failure(dir.path());
            assert_eq!(error.exit, Exit::Denied, "{name} {mode:o}: {error}");
        }
    }
}

#[test]
fn links_and_special_files_are_refused() {
    for (name, target) in [(SOCKET_FILE, "elsewhere"), (KEY_FILE, "/dev/zero")] {
        let dir = complete_dir();
        let file = dir.path().join(name);
        fs::rename(&file, dir.path().join("elsewhere")).unwrap();
        symlink(target, &file).unwrap();
        let error = failure(dir.path());
        assert_eq!(error.exit, Exit::Denied, "{name}: {error}");
        assert!(error.message.contains(name), "{error}");
    }
    let dir = complete_dir();
    let socket = dir.path().join(SOCKET_FILE);
    fs::remove_file(&socket).unwrap();
    fs::write(&socket, "").unwrap();
    assert_eq!(failure(dir.path()).exit, Exit::Denied);
}

#[test]
fn directories_writable_by_others_and_symlinks_are_not_trusted() {
    let dir = complete_dir();
    assert!(is_trusted(dir.path()));
    for mode in [0o777, 0o775, 0o1777] {
        set_mode(dir.path(), mode);
        assert!(!is_trusted(dir.path()), "{mode:o}");
        let error = failure(dir.path());
        assert_eq!(error.exit, Exit::Denied, "{mode:o}: {error}");
        assert!(error.message.contains("chmod go-w"), "{error}");
    }
    set_mode(dir.path(), 0o700);
    let elsewhere = leasehold_testkit::temp_dir();
    let link = elsewhere.path().join("link");
    symlink(dir.path(), &link).unwrap();
    assert!(!is_trusted(&link));
}

#[test]
fn missing_directory_and_file_are_usage_errors() {
    let dir = leasehold_testkit::temp_dir();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    for path in [dir.path().join("none"), file] {
        let error = failure(&path);
        assert_eq!(error.exit, Exit::Usage);
        let name = path.display().to_string();
        assert!(error.message.contains(&name), "{error}");
    }
}

/// The directory was checked by its path and used by its path: whoever could rename it in between got the key.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn directory_that_is_exchanged_after_the_check_gets_no_key() {
    use std::io::{Read, Write};

    let parent = leasehold_testkit::temp_dir();
    let (dir, moved) = (parent.path().join("data"), parent.path().join("moved"));
    let create = |byte: u8| {
        fs::create_dir(&dir).unwrap();
        set_mode(&dir, 0o700);
        let key = Secret::new(&KeyScope::Admin, &[byte; 32]);
        fs::write(dir.join(KEY_FILE), key.reveal()).unwrap();
        set_mode(&dir.join(KEY_FILE), 0o600);
        let listener = UnixListener::bind(dir.join(SOCKET_FILE)).unwrap();
        set_mode(&dir.join(SOCKET_FILE), 0o600);
        (listener, key.reveal().to_owned())
    };
    let (own, own_key) = create(7);
    let checked = LocalDataDir::named(&dir).unwrap();
    fs::rename(&dir, &moved).unwrap();
    let (planted, _) = create(8);
    planted.set_nonblocking(true).unwrap();
    let options = ClientOptions {
        max_attempts: 1,
        ..ClientOptions::default()
    };
    let (client, _) = checked.client(options).unwrap();
    drop(checked);
    let server = std::thread::spawn(move || {
        let (mut stream, _) = own.accept().unwrap();
        let mut head = vec![0; 4096];
        let length = stream.read(&mut head).unwrap();
        stream
            .write_all(b"HTTP/1.1 204 No Content\r\n\r\n")
            .unwrap();
        String::from_utf8(head[..length].to_vec()).unwrap()
    });
    client.key_me().await.unwrap_err();
    let head = server.join().unwrap();
    assert!(head.contains(&format!("Bearer {own_key}")), "{head}");
    let error = planted.accept().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
}
