//! `leasehold top` on a terminal: it restores the terminal however it ends. The program is this test binary, started again.

use crate::TIMEOUT;
use crate::demo_server::DemoServer;
use crate::pty::Pty;
use clap::Parser;
use leasehold_client::api::key::{NewKey, Scope};
use leasehold_console::Command;
use leasehold_testkit::wait_until;
use rustix::process::Signal;
use rustix::termios::LocalModes;

/// Variable with the server's address for the child process.
const SERVER: &str = "LEASEHOLD_TEST_TOP";
/// Name of the test below, which is the child's main function.
const PROGRAM: &str = "terminal::child_process_runs_top";
const ENTER_SCREEN: &str = "\u{1b}[?1049h";
const LEAVE_SCREEN: &str = "\u{1b}[?1049l";
const CURSOR_SHOWN: &str = "\u{1b}[?25h";

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// Runs `top` if the variable is set; does nothing among the other tests.
#[test]
fn child_process_runs_top() {
    let Ok(server) = std::env::var(SERVER) else {
        return;
    };
    let words = [
        "leasehold",
        "top",
        "--interval",
        "250ms",
        "--server",
        &server,
    ];
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    runtime
        .block_on(Arguments::parse_from(words).command.run())
        .unwrap();
}

async fn start(server: &DemoServer) -> Pty {
    let new = NewKey::full("test", Scope::Admin);
    let key = server.session.client.key_create(&new).await.unwrap();
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", PROGRAM, "--nocapture", "--test-threads=1"]);
    command.env(SERVER, &server.session.server);
    command.env("LEASEHOLD_KEY", &key.secret);
    command.env("TERM", "xterm-256color");
    tokio::task::block_in_place(|| {
        let pty = Pty::start(command);
        pty.wait_for("engine embedded: up", 0);
        assert!(pty.output().contains(ENTER_SCREEN));
        assert!(!pty.modes().local_modes.contains(LocalModes::ICANON));
        pty
    })
}

fn assert_restored(pty: &Pty) {
    let modes = pty.modes().local_modes;
    let cooked = LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
    assert!(modes.contains(cooked), "{modes:?}");
    // The reader thread may lag behind the program.
    let is_restored = || {
        let output = pty.output();
        let (entered, left) = (output.rfind(ENTER_SCREEN), output.rfind(LEAVE_SCREEN));
        entered < left && left.is_some_and(|left| output[left..].contains(CURSOR_SHOWN))
    };
    assert!(wait_until(TIMEOUT, is_restored), "{:?}", pty.output());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn terminal_is_restored_however_top_ends() {
    let server = DemoServer::new().await;
    type Way = fn(&mut Pty);
    let ways: [(&str, Way); 5] = [
        ("q", |pty| pty.press(b"q")),
        ("Ctrl-C", |pty| pty.press(&[3])),
        ("SIGTERM", |pty| pty.signal(Signal::TERM)),
        ("SIGHUP", |pty| pty.signal(Signal::HUP)),
        ("SIGINT", |pty| pty.signal(Signal::INT)),
    ];
    for (way, end) in ways {
        let mut pty = start(&server).await;
        tokio::task::block_in_place(|| {
            end(&mut pty);
            assert_eq!(pty.wait_exit_code(), Some(0), "{way}: {:?}", pty.output());
            assert_restored(&pty);
        });
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn control_z_suspends_and_resumes() {
    let server = DemoServer::new().await;
    let mut pty = start(&server).await;
    tokio::task::block_in_place(|| {
        pty.press(&[26]);
        assert!(
            wait_until(TIMEOUT, || pty.is_stopped()),
            "{:?}",
            pty.output()
        );
        assert_restored(&pty);
        let mark = pty.output().len();
        pty.signal(Signal::CONT);
        pty.wait_for(ENTER_SCREEN, mark);
        pty.wait_for("engine embedded: up", mark);
        pty.press(b"q");
        assert_eq!(pty.wait_exit_code(), Some(0));
        assert_restored(&pty);
    });
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn top_waits_for_a_stopped_server() {
    let server = DemoServer::new().await;
    let mut pty = start(&server).await;
    let mark = pty.output().len();
    server.stop().await;
    tokio::task::block_in_place(|| {
        pty.wait_for("server unreachable", mark);
        pty.press(b"q");
        assert_eq!(pty.wait_exit_code(), Some(0));
        assert_restored(&pty);
    });
}
