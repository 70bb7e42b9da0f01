//! The alternate screen of the terminal: entered, left, and restored however the program ends.

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use std::io::{self, Stdout, stdout};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the alternate screen is active. One process has one terminal.
static ACTIVE: AtomicBool = AtomicBool::new(false);

pub(super) struct Screen {
    pub(super) terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    /// Enters the alternate screen.
    pub(super) fn open() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            // Restores the terminal before the panic message is printed. If the panic happened in another task, the next
            // draw enters the alternate screen again.
            std::panic::set_hook(Box::new(move |info| {
                restore();
                before(info);
            }));
        });
        enter()?;
        let terminal = Terminal::new(CrosstermBackend::new(stdout()));
        Ok(Self {
            terminal: terminal.inspect_err(|_| restore())?,
        })
    }

    /// Enters the alternate screen if it is not active, or if the terminal may have been changed (`force`).
    pub(super) fn ensure(&mut self, force: bool) -> io::Result<()> {
        if force || !ACTIVE.load(Ordering::SeqCst) {
            enter()?;
            // A new `Terminal` has an empty buffer. `clear` on the old one would query the cursor position, which not all terminals answer.
            self.terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
        }
        Ok(())
    }

    /// Leaves the alternate screen temporarily.
    pub(super) fn release(&mut self) {
        restore();
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    ACTIVE.store(true, Ordering::SeqCst);
    execute!(stdout(), EnterAlternateScreen, Clear(ClearType::All)).inspect_err(|_| restore())
}

/// Restores the terminal; ignores errors.
fn restore() {
    if ACTIVE.swap(false, Ordering::SeqCst) {
        let _ = disable_raw_mode();
        let _ = execute!(stdout(), LeaveAlternateScreen, Show);
    }
}
