//! A pseudo-terminal and a program on it. Knows nothing of the screen's content.

use crate::TIMEOUT;
use leasehold_testkit::wait_until;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};

pub(crate) struct Pty {
    master: File,
    /// The program's side; open here too, so that the test can read its modes.
    slave: File,
    child: Child,
    output: Arc<Mutex<Vec<u8>>>,
}

impl Pty {
    /// Starts a program on a terminal of 80 columns and 24 rows, in its own process group.
    pub(crate) fn start(mut command: Command) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let no_owner = OpenptFlags::NOCTTY.bits().cast_signed();
        let slave = File::options()
            .read(true)
            .write(true)
            .custom_flags(no_owner)
            .open(name.to_str().unwrap())
            .unwrap();
        let size = Winsize {
            ws_col: 80,
            ws_row: 24,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&slave, size).unwrap();
        let side = || slave.try_clone().unwrap();
        command.stdin(side()).stdout(side()).stderr(side());
        let child = command.process_group(0).spawn().unwrap();
        let master = File::from(master);
        let output = Arc::new(Mutex::new(Vec::new()));
        let (mut reader, sink) = (master.try_clone().unwrap(), output.clone());
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                sink.lock().unwrap().extend_from_slice(&bytes[..count]);
            }
        });
        Self {
            master,
            slave,
            child,
            output,
        }
    }

    /// The terminal modes.
    pub(crate) fn modes(&self) -> Termios {
        tcgetattr(&self.slave).unwrap()
    }

    pub(crate) fn output(&self) -> String {
        String::from_utf8_lossy(&self.output.lock().unwrap()).into_owned()
    }

    /// Waits until `text` appears after the first `mark` bytes of output.
    pub(crate) fn wait_for(&self, text: &str, mark: usize) {
        let found = wait_until(TIMEOUT, || {
            self.output()
                .get(mark..)
                .is_some_and(|new| new.contains(text))
        });
        assert!(
            found,
            "timed out waiting for {text:?} in {:?}",
            self.output()
        );
    }

    pub(crate) fn press(&mut self, keys: &[u8]) {
        self.master.write_all(keys).unwrap();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Whether the program is stopped (state `T`).
    pub(crate) fn is_stopped(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let state = stat.rsplit(") ").next().unwrap();
        state.starts_with('T')
    }

    /// Waits for the program to exit; returns its exit code.
    pub(crate) fn wait_exit_code(&mut self) -> Option<i32> {
        let mut code = None;
        let exited = wait_until(TIMEOUT, || {
            code = self.child.try_wait().unwrap();
            code.is_some()
        });
        assert!(exited, "program does not exit: {:?}", self.output());
        code.unwrap().code()
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
