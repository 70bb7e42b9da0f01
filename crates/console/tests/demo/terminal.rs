//! `leasehold top` on a terminal: it takes it, and gives it back however it ends. The program is this test program, started again.

use crate::PATIENCE;
use crate::demo_server::DemoServer;
use crate::pty::Pty;
use clap::Parser;
use leasehold_client::api::key::{NewKey, Scope};
use leasehold_console::Command;
use leasehold_testkit::wait_until;
use rustix::process::Signal;
use rustix::termios::LocalModes;

/// Holds the address of the server that the program below shows.
const SERVER: &str = "LEASEHOLD_TEST_TOP";
/// The name of the test below.
const PROGRAM: &str = "terminal::a_process_with_a_server_shows_it";
const TAKEN: &str = "\u{1b}[?1049h";
const GIVEN_BACK: &str = "\u{1b}[?1049l";
const CURSOR_SHOWN: &str = "\u{1b}[?25h";

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// What the program on the terminal runs. Without a server, as among the other tests, there is nothing to show.
#[test]
fn a_process_with_a_server_shows_it() {
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

async fn start(ground: &DemoServer) -> Pty {
    let new = NewKey {
        name: "test".to_owned(),
        scope: Scope::Admin,
    };
    let key = ground.session.client.key_create(&new).await.unwrap();
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", PROGRAM, "--nocapture", "--test-threads=1"]);
    command.env(SERVER, &ground.session.server);
    command.env("LEASEHOLD_KEY", &key.secret);
    command.env("TERM", "xterm-256color");
    tokio::task::block_in_place(|| {
        let pty = Pty::start(command);
        pty.wait_for("engine embedded: well", 0);
        assert!(pty.shown().contains(TAKEN));
        assert!(!pty.modes().local_modes.contains(LocalModes::ICANON));
        pty
    })
}

fn assert_given_back(pty: &Pty) {
    let modes = pty.modes().local_modes;
    let usual = LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
    assert!(modes.contains(usual), "{modes:?}");
    // The program may have stopped before the test has read all of its output.
    let is_back = || {
        let shown = pty.shown();
        let (taken, back) = (shown.rfind(TAKEN), shown.rfind(GIVEN_BACK));
        taken < back && back.is_some_and(|back| shown[back..].contains(CURSOR_SHOWN))
    };
    assert!(wait_until(PATIENCE, is_back), "{:?}", pty.shown());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_terminal_is_given_back_however_it_ends() {
    let ground = DemoServer::new().await;
    type Way = fn(&mut Pty);
    let ways: [(&str, Way); 5] = [
        ("q", |pty| pty.press(b"q")),
        ("Ctrl-C", |pty| pty.press(&[3])),
        ("SIGTERM", |pty| pty.signal(Signal::TERM)),
        ("SIGHUP", |pty| pty.signal(Signal::HUP)),
        ("SIGINT", |pty| pty.signal(Signal::INT)),
    ];
    for (way, end) in ways {
        let mut pty = start(&ground).await;
        tokio::task::block_in_place(|| {
            end(&mut pty);
            assert_eq!(pty.ended(), Some(0), "{way}: {:?}", pty.shown());
            assert_given_back(&pty);
        });
    }
    ground.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn control_z_lends_the_terminal_to_the_shell_and_it_goes_on_after() {
    let ground = DemoServer::new().await;
    let mut pty = start(&ground).await;
    tokio::task::block_in_place(|| {
        pty.press(&[26]);
        assert!(
            wait_until(PATIENCE, || pty.is_stopped()),
            "{:?}",
            pty.shown()
        );
        assert_given_back(&pty);
        let mark = pty.shown().len();
        pty.signal(Signal::CONT);
        pty.wait_for(TAKEN, mark);
        pty.wait_for("engine embedded: well", mark);
        pty.press(b"q");
        assert_eq!(pty.ended(), Some(0));
        assert_given_back(&pty);
    });
    ground.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_goes_away_is_waited_for() {
    let ground = DemoServer::new().await;
    let mut pty = start(&ground).await;
    let mark = pty.shown().len();
    ground.end().await;
    tokio::task::block_in_place(|| {
        pty.wait_for("no answer", mark);
        pty.press(b"q");
        assert_eq!(pty.ended(), Some(0));
        assert_given_back(&pty);
    });
}
