//! One connection that receives NOTIFY messages of other processes, and holds the waiter lock. Knows neither requests nor jobs.
//!
//! NOTIFY coalescing: processes notify only while some waiter holds the waiter lock (see `sql/functions/leasehold_notify.sql`), and
//! `spurious_wakeup_delay` and the dispatcher's `arm_delay` limit how often a waiter arms again. At most one process holds the lock
//! at a time. The others retry as long as they have a waiter: the holder releases the lock as soon as it is busy, and another
//! waiter has to be notified of new work. A retry that gets the lock wakes the waiter once, for work that came in the meantime.
//!
//! The task lives as long as the store that started it, and reconnects forever.

use crate::pool::Address;
use futures::StreamExt;
use leasehold_store::sql;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Interval, MissedTickBehavior, interval, sleep, timeout};
use tokio_postgres::error::SqlState;
use tokio_postgres::{AsyncMessage, Client, Error, Statement};

const CONFIGURE: &str = sql!("notification/configure");
const DISARM: &str = sql!("notification/disarm");

const MIN_BACKOFF: Duration = Duration::from_millis(100);
const MAX_BACKOFF: Duration = Duration::from_secs(5);
/// How long the server may take to answer; longer than arming may wait for open transactions.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a waiter without the waiter lock tries to get it.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);
/// How long to wait after an open transaction blocked the attempt: every process notifies while an attempt is waiting.
const RETRY_AFTER_TIMEOUT: Duration = Duration::from_secs(5);
/// Limit for connecting and waiting for open transactions; a waiter that is not armed by then polls.
const ARM_TIMEOUT: Duration = Duration::from_secs(3);

/// What a listener does with notifications.
pub(crate) trait NotificationHandler: Send + Sync + 'static {
    /// The channel's name in logs.
    const CHANNEL: &'static str;
    /// The LISTEN statement.
    const LISTEN: &'static str;
    /// The statement that acquires the waiter lock.
    const ARM: &'static str;
    /// How often to check whether the waiter lock is still needed.
    const CHECK_INTERVAL: Duration;
    /// Whether the first notification for the waiter releases the waiter lock. If false, the lock is released when the waiter is busy,
    /// or has not armed again by the next check.
    const RELEASES_WHEN_NOTIFIED: bool;

    /// Whether a notification is for the waiter that holds the lock.
    fn is_for_waiter(&self, payload: &str) -> bool;

    /// Wakes those who wait for this notification.
    fn handle(&self, payload: &str);

    /// Wakes the waiter that holds the lock.
    fn wake_waiter(&self);

    /// Wakes every waiter: notifications may have been missed.
    fn wake_all(&self);

    /// Whether other processes notify this one of new work.
    fn armed(&self) -> &AtomicBool;

    /// Whether this process has a waiter, or will have one soon.
    fn is_needed(&self) -> bool;
}

/// A command of the store to its listener task.
enum Command {
    /// Acquire the waiter lock, and reply whether other processes notify now.
    Arm(oneshot::Sender<bool>),
    /// Release the waiter lock: nothing waits any more.
    Disarm,
}

type Commands = mpsc::UnboundedReceiver<Command>;

/// Starts the listener task when it is first needed, and sends it commands.
pub(crate) struct Listener<H> {
    handler: Arc<H>,
    /// None: notifications of other processes are switched off.
    address: Option<Address>,
    /// The listener task ends when this sender is dropped.
    commands: Mutex<Option<mpsc::UnboundedSender<Command>>>,
}

impl<H: NotificationHandler> Listener<H> {
    pub(crate) fn new(handler: Arc<H>, address: Option<Address>) -> Self {
        Self {
            handler,
            address,
            commands: Mutex::default(),
        }
    }

    /// Starts the listener task unless it runs.
    pub(crate) fn start(&self) {
        self.commands();
    }

    /// Acquires the waiter lock, and returns whether other processes notify now.
    pub(crate) async fn arm(&self) -> bool {
        let Some(commands) = self.commands() else {
            return false;
        };
        let (reply, answer) = oneshot::channel();
        if commands.send(Command::Arm(reply)).is_err() {
            return false;
        }
        matches!(timeout(ARM_TIMEOUT, answer).await, Ok(Ok(true)))
    }

    /// Releases the waiter lock if this process holds it.
    pub(crate) fn disarm(&self) {
        if self.handler.armed().swap(false, Ordering::Relaxed)
            && let Some(commands) = self.commands()
        {
            // A connection that has ended holds no lock.
            let _ = commands.send(Command::Disarm);
        }
    }

    /// Starts the listener task unless it runs: on first use, or after its runtime ended.
    fn commands(&self) -> Option<mpsc::UnboundedSender<Command>> {
        let address = self.address.as_ref()?;
        let mut current = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(commands) = current.as_ref().filter(|sender| !sender.is_closed()) {
            return Some(commands.clone());
        }
        let (commands, receiver) = mpsc::unbounded_channel();
        tokio::spawn(run(address.clone(), Arc::clone(&self.handler), receiver));
        *current = Some(commands.clone());
        Some(commands)
    }
}

/// Listens until the store is dropped.
async fn run<H: NotificationHandler>(address: Address, handler: Arc<H>, mut commands: Commands) {
    let mut backoff = MIN_BACKOFF;
    let channel = H::CHANNEL;
    loop {
        match timeout(RESPONSE_TIMEOUT, ListenSession::open(&address, &handler)).await {
            Ok(Ok(mut session)) => {
                backoff = MIN_BACKOFF;
                // Notifications were missed while there was no connection.
                handler.wake_all();
                let end = session.serve(&mut commands).await;
                handler.armed().store(false, Ordering::Relaxed);
                if end.is_break() {
                    return;
                }
                tracing::warn!(channel, "listener connection lost; reconnecting");
            }
            Ok(Err(error)) => tracing::debug!(channel, %error, "listener connection failed"),
            Err(_) => tracing::debug!(channel, "listener connection timed out"),
        }
        if wait_before_reconnect(backoff, &mut commands)
            .await
            .is_break()
        {
            return;
        }
        backoff = (backoff * 2).min(MAX_BACKOFF);
    }
}

/// Waits before the next attempt to connect; refuses to arm meanwhile.
async fn wait_before_reconnect(backoff: Duration, commands: &mut Commands) -> ControlFlow<()> {
    let end = sleep(backoff);
    tokio::pin!(end);
    loop {
        tokio::select! {
            () = &mut end => return ControlFlow::Continue(()),
            command = commands.recv() => match command {
                None => return ControlFlow::Break(()),
                // The caller may have stopped waiting.
                Some(Command::Arm(reply)) => drop(reply.send(false)),
                Some(Command::Disarm) => {}
            },
        }
    }
}

/// Outcome of an attempt to acquire the waiter lock.
enum LockOutcome {
    Acquired,
    /// Another process holds it.
    HeldElsewhere,
    /// An open transaction that created work before kept the attempt waiting too long.
    TimedOut,
}

/// A connection that listens.
struct ListenSession<H> {
    handler: Arc<H>,
    client: Client,
    arm: Statement,
    disarm: Statement,
    /// One message for each notification that is for the waiter.
    notified: mpsc::UnboundedReceiver<()>,
    /// Whether this session holds the waiter lock, so that other processes notify.
    has_lock: bool,
    /// Whether a waiter of this process wants the waiter lock.
    is_wanted: bool,
    /// Whether the waiter was notified since it last armed.
    was_notified: bool,
    /// When to try again to acquire the waiter lock.
    retry: Interval,
}

fn every(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

impl<H: NotificationHandler> ListenSession<H> {
    async fn open(address: &Address, handler: &Arc<H>) -> Result<Self, Error> {
        let (client, mut connection) = address.config.connect(address.tls.clone()).await?;
        let (sender, notified) = mpsc::unbounded_channel();
        let receiving = Arc::clone(handler);
        // Ends when the client is dropped or the server closes the connection.
        tokio::spawn(async move {
            let mut messages =
                futures::stream::poll_fn(move |context| connection.poll_message(context));
            while let Some(Ok(message)) = messages.next().await {
                if let AsyncMessage::Notification(notification) = message {
                    let payload = notification.payload();
                    // Signals the session first: a waiter that wakes up may arm at once, and that must come second.
                    if receiving.is_for_waiter(payload) {
                        let _ = sender.send(());
                    }
                    // In this task: every hop between tasks adds latency.
                    receiving.handle(payload);
                }
            }
        });
        client.batch_execute(CONFIGURE).await?;
        client.batch_execute(H::LISTEN).await?;
        Ok(Self {
            handler: Arc::clone(handler),
            arm: client.prepare(H::ARM).await?,
            disarm: client.prepare(DISARM).await?,
            client,
            notified,
            has_lock: false,
            is_wanted: false,
            was_notified: false,
            retry: every(RETRY_INTERVAL),
        })
    }

    /// Serves until the store is dropped (break) or the connection is lost (continue).
    async fn serve(&mut self, commands: &mut Commands) -> ControlFlow<()> {
        let mut check = every(H::CHECK_INTERVAL);
        loop {
            let done = tokio::select! {
                biased;
                notified = self.notified.recv() => match notified {
                    None => return ControlFlow::Continue(()),
                    Some(()) if H::RELEASES_WHEN_NOTIFIED => self.release().await,
                    Some(()) => {
                        self.was_notified = true;
                        Some(())
                    }
                },
                command = commands.recv() => match command {
                    None => return ControlFlow::Break(()),
                    Some(Command::Arm(reply)) => {
                        self.is_wanted = true;
                        self.was_notified = false;
                        self.acquire().await.map(|outcome| {
                            // The caller may have stopped waiting; then the next check releases the lock.
                            let _ = reply.send(matches!(outcome, LockOutcome::Acquired));
                        })
                    }
                    Some(Command::Disarm) => self.release().await,
                },
                _ = check.tick(), if self.has_lock || self.is_wanted => {
                    let needed = self.handler.is_needed() && !self.was_notified;
                    if needed { Some(()) } else { self.release().await }
                }
                _ = self.retry.tick(), if self.is_wanted && !self.has_lock => self.retry_acquire().await,
            };
            if done.is_none() {
                return ControlFlow::Continue(());
            }
        }
    }

    async fn retry_acquire(&mut self) -> Option<()> {
        match self.acquire().await? {
            // This process was not notified of work that came before.
            LockOutcome::Acquired | LockOutcome::TimedOut => self.handler.wake_waiter(),
            LockOutcome::HeldElsewhere => {}
        }
        Some(())
    }

    /// Tries to acquire the waiter lock; none if the connection is lost.
    async fn acquire(&mut self) -> Option<LockOutcome> {
        let mut outcome = LockOutcome::Acquired;
        if !self.has_lock {
            let query = self.client.query_one(&self.arm, &[]);
            match timeout(RESPONSE_TIMEOUT, query).await.ok()? {
                Ok(row) if row.get("acquired") => self.has_lock = true,
                Ok(_) => outcome = LockOutcome::HeldElsewhere,
                Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                    self.unlock().await?;
                    self.retry.reset_after(RETRY_AFTER_TIMEOUT);
                    outcome = LockOutcome::TimedOut;
                }
                Err(_) => return None,
            }
        }
        self.handler.armed().store(self.has_lock, Ordering::Relaxed);
        Some(outcome)
    }

    async fn release(&mut self) -> Option<()> {
        self.is_wanted = false;
        self.was_notified = false;
        self.handler.armed().store(false, Ordering::Relaxed);
        if self.has_lock {
            self.unlock().await?;
        }
        Some(())
    }

    async fn unlock(&mut self) -> Option<()> {
        let query = self.client.query_one(&self.disarm, &[]);
        timeout(RESPONSE_TIMEOUT, query).await.ok()?.ok()?;
        self.has_lock = false;
        Some(())
    }
}
