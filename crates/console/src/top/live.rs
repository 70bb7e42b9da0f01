//! The event loop of `top`: receives keys, poll results and signals, and draws the screen. Contains no display logic.

use super::model::TopModel;
use super::page;
use super::poll::{self, PollResult};
use super::screen::Screen;
use super::theme::Theme;
use super::view::{View, ViewAction};
use crate::command_error::CommandResult;
use crate::exit::{Exit, Failure};
use crate::session::Session;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use rustix::process::{Signal as Name, kill_current_process_group};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How often the key thread checks whether it should stop.
const KEY_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How long to wait for SIGCONT. A process whose parent does not handle stopped children never stops; it continues after this time.
const RESUME_TIMEOUT: Duration = Duration::from_millis(500);

pub(super) async fn run(
    session: &Session,
    every: Duration,
    stop: CancellationToken,
) -> CommandResult {
    let mut model = TopModel::new(&session.server);
    let first = poll::fetch(&session.client).await?;
    model.update(first.overview, first.instances);
    let mut signals = Signals::listen()?;
    let (sender, mut results) = mpsc::channel(1);
    let poller = tokio::spawn(poll::run(session.client.clone(), every, sender));
    let mut keys = KeyReader::listen();
    let mut top = TopApp {
        screen: Screen::open()?,
        theme: Theme::new(session.out.has_colors()),
        model,
        frozen: None,
        view: View::default(),
    };
    let end = loop {
        if let Err(error) = top.draw() {
            break Err(error.into());
        }
        tokio::select! {
            item = results.recv() => match item {
                Some(item) => top.handle_poll(item),
                // The poller crashed.
                None => break Ok(()),
            },
            event = keys.next() => match event {
                Ok(event) => match top.handle_event(&event) {
                    ViewAction::Continue => {}
                    ViewAction::Quit => break Ok(()),
                    ViewAction::Suspend => signals.suspend(&mut top.screen).await,
                },
                Err(error) => break Err(key_failure(&error).into()),
            },
            event = signals.next() => match event {
                SignalEvent::Terminate => break Ok(()),
                SignalEvent::Resume => if let Err(error) = top.screen.ensure(true) {
                    break Err(error.into());
                },
            },
            () = stop.cancelled() => break Ok(()),
        }
    };
    poller.abort();
    drop(top);
    keys.end().await;
    end
}

struct TopApp {
    screen: Screen,
    theme: Theme,
    model: TopModel,
    /// The model on the screen while the display is frozen.
    frozen: Option<Box<TopModel>>,
    view: View,
}

impl TopApp {
    fn draw(&mut self) -> io::Result<()> {
        self.screen.ensure(false)?;
        let model = self.frozen.as_deref().unwrap_or(&self.model);
        let (view, theme) = (&self.view, self.theme);
        let drawn = self
            .screen
            .terminal
            .draw(|frame| page::draw(frame, model, view, theme));
        drawn.map(drop)
    }

    fn handle_poll(&mut self, result: PollResult) {
        match result {
            PollResult::Snapshot(snapshot) => {
                self.model.update(snapshot.overview, snapshot.instances)
            }
            PollResult::Failed { why, at } => self.model.record_failure(&why, at),
        }
        self.view
            .clamp_scroll(self.frozen.as_deref().unwrap_or(&self.model));
    }

    fn handle_event(&mut self, event: &Event) -> ViewAction {
        let Event::Key(key) = event else {
            return ViewAction::Continue;
        };
        if key.kind == KeyEventKind::Release {
            return ViewAction::Continue;
        }
        let model = self.frozen.as_deref().unwrap_or(&self.model);
        let action = self.view.press(*key, model);
        match (self.view.frozen, self.frozen.is_some()) {
            (true, false) => self.frozen = Some(Box::new(self.model.clone())),
            (false, true) => self.frozen = None,
            _ => {}
        }
        action
    }
}

/// The signals of a terminal program.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    resume: Signal,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
            resume: signal(SignalKind::from_raw(Name::CONT.as_raw()))?,
        })
    }

    async fn next(&mut self) -> SignalEvent {
        tokio::select! {
            _ = self.terminate.recv() => SignalEvent::Terminate,
            _ = self.interrupt.recv() => SignalEvent::Terminate,
            _ = self.hang_up.recv() => SignalEvent::Terminate,
            _ = self.resume.recv() => SignalEvent::Resume,
        }
    }

    /// Stops the process as Ctrl-Z does, and returns after SIGCONT.
    async fn suspend(&mut self, screen: &mut Screen) {
        screen.release();
        if kill_current_process_group(Name::TSTP).is_ok() {
            let _ = timeout(RESUME_TIMEOUT, self.resume.recv()).await;
        }
    }
}

/// What a signal requests.
enum SignalEvent {
    Terminate,
    /// SIGCONT: the terminal may have been changed while the process was stopped.
    Resume,
}

/// A thread that reads key events, because reading a terminal blocks.
struct KeyReader {
    events: mpsc::Receiver<io::Result<Event>>,
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl KeyReader {
    fn listen() -> Self {
        let (sender, events) = mpsc::channel(16);
        let stopped = Arc::new(AtomicBool::new(false));
        let until = stopped.clone();
        let thread = tokio::task::spawn_blocking(move || {
            while !until.load(Ordering::SeqCst) {
                let event = match event::poll(KEY_POLL_INTERVAL) {
                    Ok(false) => continue,
                    Ok(true) => event::read(),
                    Err(error) => Err(error),
                };
                let broken = event.is_err();
                if sender.blocking_send(event).is_err() || broken {
                    return;
                }
            }
        });
        Self {
            events,
            stopped,
            thread: Some(thread),
        }
    }

    async fn next(&mut self) -> io::Result<Event> {
        let closed = || io::Error::other("terminal closed");
        self.events.recv().await.ok_or_else(closed)?
    }

    /// Stops the thread, so that it does not consume the input of the next program.
    async fn end(mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.events.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.await;
        }
    }
}

impl Drop for KeyReader {
    /// Stops the thread without waiting for it.
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
    }
}

fn key_failure(error: &io::Error) -> Failure {
    let message =
        format!("cannot read keys from the terminal: {error}; use --once to print one snapshot");
    Failure::new(Exit::Failed, message)
}
