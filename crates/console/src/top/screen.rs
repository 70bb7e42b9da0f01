//! The terminal while it is drawn on: taken, given back, taken again. It is given back however the program ends.

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

/// Whether the terminal is ours now. One process has one terminal.
static OURS: AtomicBool = AtomicBool::new(false);

pub(super) struct Screen {
    pub(super) terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    /// Takes the terminal.
    pub(super) fn open() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            // What a panic says must be read, so the terminal is given back first. A panic elsewhere in the program does not end us: the next
            // picture takes the terminal again.
            std::panic::set_hook(Box::new(move |info| {
                give_back();
                before(info);
            }));
        });
        take()?;
        let terminal = Terminal::new(CrosstermBackend::new(stdout()));
        Ok(Self {
            terminal: terminal.inspect_err(|_| give_back())?,
        })
    }

    /// Takes the terminal if it is not ours, or if it may have been changed meanwhile.
    pub(super) fn ensure(&mut self, anew: bool) -> io::Result<()> {
        if anew || !OURS.load(Ordering::SeqCst) {
            take()?;
            // A new one knows that nothing is drawn yet. Clearing the old one would ask the terminal where its cursor is, and not all answer.
            self.terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
        }
        Ok(())
    }

    /// Gives the terminal back for a while.
    pub(super) fn lend(&mut self) {
        give_back();
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

fn take() -> io::Result<()> {
    enable_raw_mode()?;
    OURS.store(true, Ordering::SeqCst);
    execute!(stdout(), EnterAlternateScreen, Clear(ClearType::All)).inspect_err(|_| give_back())
}

/// There is nobody to tell if this does not succeed.
fn give_back() {
    if OURS.swap(false, Ordering::SeqCst) {
        let _ = disable_raw_mode();
        let _ = execute!(stdout(), LeaveAlternateScreen, Show);
    }
}
