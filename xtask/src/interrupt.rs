//! Ctrl-C and SIGTERM: pass them on to the running child, so that the parent lives to clean up. Knows no commands.

use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::{Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// What has been asked for, and whom to pass it on to.
#[derive(Default)]
struct State {
    interrupted: bool,
    child_group: Option<u32>,
}

/// From its making on, signals end the current child instead of this process.
pub(crate) struct Interrupt {
    state: Arc<Mutex<State>>,
}

impl Interrupt {
    pub(crate) fn install() -> Result<Self> {
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        thread::spawn(move || {
            for _ in &mut signals {
                let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
                // Who asks twice means it.
                let signal = if state.interrupted { "KILL" } else { "TERM" };
                state.interrupted = true;
                if let Some(group) = state.child_group {
                    signal_group(signal, group);
                }
            }
        });
        Ok(Self { state })
    }

    /// Fails once a signal has come.
    pub(crate) fn check(&self) -> Result<()> {
        if self.lock().interrupted {
            bail!("interrupted");
        }
        Ok(())
    }

    /// Names the child's process group to pass signals on to, or none any more.
    pub(crate) fn watch(&self, group: Option<u32>) {
        let mut state = self.lock();
        state.child_group = group;
        if let (true, Some(group)) = (state.interrupted, group) {
            // It came between the last check and the child's start.
            signal_group("TERM", group);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn signal_group(signal: &str, group: u32) {
    // The shell's own kill: no unsafe code, and no package that may be missing. A group that is gone is fine.
    let _ = Command::new("sh")
        .args(["-c", &format!("kill -s {signal} -- -{group} 2>/dev/null")])
        .status();
}
