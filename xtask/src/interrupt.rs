//! Handles Ctrl-C and SIGTERM: passes them to the running children so that the parent can clean up. Knows no commands.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::{Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Whether a signal arrived, and the process groups to pass it to.
#[derive(Default)]
struct State {
    interrupted: bool,
    groups: BTreeSet<u32>,
}

/// While it exists, signals go to the children instead of this process.
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
                // A second signal exits immediately.
                let signal = if state.interrupted { "KILL" } else { "TERM" };
                state.interrupted = true;
                for group in &state.groups {
                    signal_group(signal, *group);
                }
            }
        });
        Ok(Self { state })
    }

    /// Fails after a signal.
    pub(crate) fn check(&self) -> Result<()> {
        if self.lock().interrupted {
            bail!("interrupted");
        }
        Ok(())
    }

    /// Registers the process group of a child.
    pub(crate) fn add(&self, group: u32) {
        let mut state = self.lock();
        state.groups.insert(group);
        if state.interrupted {
            // The signal arrived before the child was registered.
            signal_group("TERM", group);
        }
    }

    /// Unregisters a child.
    pub(crate) fn remove(&self, group: u32) {
        self.lock().groups.remove(&group);
    }

    /// Kills a child and all its children.
    pub(crate) fn kill(&self, group: u32) {
        signal_group("KILL", group);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn signal_group(signal: &str, group: u32) {
    // The shell's kill needs neither unsafe code nor another package. A missing group is fine.
    let _ = Command::new("sh")
        .args(["-c", &format!("kill -s {signal} -- -{group} 2>/dev/null")])
        .status();
}
