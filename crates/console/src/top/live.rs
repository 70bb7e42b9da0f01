//! The loop: keys, looks and signals come in, pictures go out. Decides nothing.

use super::look::Look;
use super::model::Model;
use super::page;
use super::poll::{self, News};
use super::screen::Screen;
use super::view::{View, Wish};
use crate::exit::{Exit, Failure};
use crate::session::Session;
use crate::trouble::Outcome;
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

/// How soon the thread that reads keys notices that it is not wanted any more.
const NOTICE: Duration = Duration::from_millis(100);
/// Nobody can stop a process whose parent does not wait for it; then it goes on after this.
const STOPPED: Duration = Duration::from_millis(500);

pub(super) async fn run(session: &Session, every: Duration, stop: CancellationToken) -> Outcome {
    let mut model = Model::new(&session.server);
    let first = poll::look(&session.client).await?;
    model.take(first.overview, first.instances);
    let mut signals = Signals::listen()?;
    let (sender, mut news) = mpsc::channel(1);
    let poller = tokio::spawn(poll::run(session.client.clone(), every, sender));
    let mut keys = Keys::listen();
    let mut top = Live {
        screen: Screen::open()?,
        look: Look::new(session.out.has_colors()),
        model,
        frozen: None,
        view: View::default(),
    };
    let end = loop {
        if let Err(error) = top.draw() {
            break Err(error.into());
        }
        tokio::select! {
            item = news.recv() => match item {
                Some(item) => top.hear(item),
                // It ends only by breaking.
                None => break Ok(()),
            },
            event = keys.next() => match event {
                Ok(event) => match top.obey(&event) {
                    Wish::Stay => {}
                    Wish::Quit => break Ok(()),
                    Wish::Suspend => signals.suspend(&mut top.screen).await,
                },
                Err(error) => break Err(unread(&error).into()),
            },
            told = signals.next() => match told {
                Told::End => break Ok(()),
                Told::GoOn => if let Err(error) = top.screen.ensure(true) {
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

struct Live {
    screen: Screen,
    look: Look,
    model: Model,
    /// What is shown while it is frozen.
    frozen: Option<Box<Model>>,
    view: View,
}

impl Live {
    fn draw(&mut self) -> io::Result<()> {
        self.screen.ensure(false)?;
        let model = self.frozen.as_deref().unwrap_or(&self.model);
        let (view, look) = (&self.view, self.look);
        let drawn = self
            .screen
            .terminal
            .draw(|frame| page::draw(frame, model, view, look));
        drawn.map(drop)
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Seen(seen) => self.model.take(seen.overview, seen.instances),
            News::Lost { why, at } => self.model.lost(&why, at),
        }
        self.view
            .bound(self.frozen.as_deref().unwrap_or(&self.model));
    }

    fn obey(&mut self, event: &Event) -> Wish {
        let Event::Key(key) = event else {
            return Wish::Stay;
        };
        if key.kind == KeyEventKind::Release {
            return Wish::Stay;
        }
        let model = self.frozen.as_deref().unwrap_or(&self.model);
        let wish = self.view.press(*key, model);
        match (self.view.frozen, self.frozen.is_some()) {
            (true, false) => self.frozen = Some(Box::new(self.model.clone())),
            (false, true) => self.frozen = None,
            _ => {}
        }
        wish
    }
}

/// What the system tells a program at a terminal.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    go_on: Signal,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
            go_on: signal(SignalKind::from_raw(Name::CONT.as_raw()))?,
        })
    }

    async fn next(&mut self) -> Told {
        tokio::select! {
            _ = self.terminate.recv() => Told::End,
            _ = self.interrupt.recv() => Told::End,
            _ = self.hang_up.recv() => Told::End,
            _ = self.go_on.recv() => Told::GoOn,
        }
    }

    /// Stops the program as Ctrl-Z does elsewhere, and returns when it goes on.
    async fn suspend(&mut self, screen: &mut Screen) {
        screen.lend();
        if kill_current_process_group(Name::TSTP).is_ok() {
            let _ = timeout(STOPPED, self.go_on.recv()).await;
        }
    }
}

/// What a signal asks for.
enum Told {
    End,
    /// The program was stopped, and whoever did may have changed the terminal.
    GoOn,
}

/// A thread that reads keys: reading a terminal blocks.
struct Keys {
    events: mpsc::Receiver<io::Result<Event>>,
    unwanted: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Keys {
    fn listen() -> Self {
        let (sender, events) = mpsc::channel(16);
        let unwanted = Arc::new(AtomicBool::new(false));
        let until = unwanted.clone();
        let thread = tokio::task::spawn_blocking(move || {
            while !until.load(Ordering::SeqCst) {
                let event = match event::poll(NOTICE) {
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
            unwanted,
            thread: Some(thread),
        }
    }

    async fn next(&mut self) -> io::Result<Event> {
        let closed = || io::Error::other("the terminal was closed");
        self.events.recv().await.ok_or_else(closed)?
    }

    /// Ends the thread, so that what is typed next is for whoever comes next.
    async fn end(mut self) {
        self.unwanted.store(true, Ordering::SeqCst);
        self.events.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.await;
        }
    }
}

impl Drop for Keys {
    /// Whoever drops the loop must not wait for a key.
    fn drop(&mut self) {
        self.unwanted.store(true, Ordering::SeqCst);
    }
}

fn unread(error: &io::Error) -> Failure {
    let message = format!(
        "the terminal's keys cannot be read: {error}; --once prints one picture without them"
    );
    Failure::new(Exit::Failed, message)
}
