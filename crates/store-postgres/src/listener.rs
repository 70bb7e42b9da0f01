//! One connection that hears what other processes do, and holds the seat of a sleeper. Knows neither requests nor jobs.
//!
//! It lives as long as the store that started it, and connects again for ever. Where another process has the seat it tries again as
//! long as somebody here sleeps: once that other is awake and busy, someone who sleeps must be told of what is new. Then it rings
//! once for what came meanwhile.

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

const SETTLE_IN: &str = sql!("wake/settle_in");
const DISARM: &str = sql!("wake/disarm");

const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// A server that says nothing for so long is gone. More than arming may wait for open transactions.
const SILENCE: Duration = Duration::from_secs(5);
/// How long a sleeper may go without a seat that is free.
const TRY_AGAIN: Duration = Duration::from_millis(250);
/// The same where somebody's transaction is in the way: everybody notifies as long as it is tried.
const TRY_LATER: Duration = Duration::from_secs(5);
/// Connecting and waiting for open transactions together; a sleeper that is not armed by then looks from time to time.
const ARM_AT_MOST: Duration = Duration::from_secs(3);

/// What is rung when something is heard.
pub(crate) trait Ear: Send + Sync + 'static {
    /// What it listens for, as a log calls it.
    const FOR: &'static str;
    /// The statement that begins to listen.
    const LISTEN: &'static str;
    /// The statement that takes the seat.
    const ARM: &'static str;
    /// How often to ask whether the seat is still needed.
    const ASK: Duration;
    /// Whether the seat is given up as soon as its sleeper is rung for; else when that is busy, or has not come back soon.
    const STANDS_UP_AT_ONCE: bool;

    /// Whether a notification is for the sleeper in the seat.
    fn is_for_sleeper(&self, payload: &str) -> bool;

    /// Rings for a notification.
    fn ring_for(&self, payload: &str);

    /// Rings for the sleeper in the seat.
    fn ring_sleeper(&self);

    /// Rings for everybody: something may have been missed.
    fn ring_all(&self);

    /// Whether everybody who has news for the sleeper notifies.
    fn armed(&self) -> &AtomicBool;

    /// Whether somebody sleeps, or will soon.
    fn is_needed(&self) -> bool;
}

/// What a store asks of its listener.
enum Order {
    /// Have everybody notify, and say whether they do.
    Arm(oneshot::Sender<bool>),
    /// Nobody sleeps any more.
    Disarm,
}

type Orders = mpsc::UnboundedReceiver<Order>;

/// The way to a connection that listens, which is made when it is first needed.
pub(crate) struct Listener<E> {
    ear: Arc<E>,
    /// Where to listen; none where only this process is heard.
    address: Option<Address>,
    /// The connection ends when this does.
    orders: Mutex<Option<mpsc::UnboundedSender<Order>>>,
}

impl<E: Ear> Listener<E> {
    pub(crate) fn new(ear: Arc<E>, address: Option<Address>) -> Self {
        Self {
            ear,
            address,
            orders: Mutex::default(),
        }
    }

    /// Has it listen where it does not yet.
    pub(crate) fn start(&self) {
        self.orders();
    }

    /// Takes the seat, and says whether everybody notifies.
    pub(crate) async fn arm(&self) -> bool {
        let Some(orders) = self.orders() else {
            return false;
        };
        let (reply, answer) = oneshot::channel();
        if orders.send(Order::Arm(reply)).is_err() {
            return false;
        }
        matches!(timeout(ARM_AT_MOST, answer).await, Ok(Ok(true)))
    }

    /// Gives the seat up where it has it.
    pub(crate) fn disarm(&self) {
        if self.ear.armed().swap(false, Ordering::Relaxed)
            && let Some(orders) = self.orders()
        {
            // If the connection has ended it holds nothing.
            let _ = orders.send(Order::Disarm);
        }
    }

    /// Starts it where it does not run: at first, or after its runtime ended.
    fn orders(&self) -> Option<mpsc::UnboundedSender<Order>> {
        let address = self.address.as_ref()?;
        let mut kept = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(orders) = kept.as_ref().filter(|orders| !orders.is_closed()) {
            return Some(orders.clone());
        }
        let (orders, taken) = mpsc::unbounded_channel();
        tokio::spawn(run(address.clone(), Arc::clone(&self.ear), taken));
        *kept = Some(orders.clone());
        Some(orders)
    }
}

/// Listens until the store is gone.
async fn run<E: Ear>(address: Address, ear: Arc<E>, mut orders: Orders) {
    let mut pause = SHORTEST_PAUSE;
    loop {
        match timeout(SILENCE, Session::open(&address, &ear)).await {
            Ok(Ok(mut session)) => {
                pause = SHORTEST_PAUSE;
                // Whatever happened while nobody listened.
                ear.ring_all();
                let end = session.serve(&mut orders).await;
                ear.armed().store(false, Ordering::Relaxed);
                if end.is_break() {
                    return;
                }
                tracing::warn!("the connection that listens for {} is lost", E::FOR);
            }
            Ok(Err(error)) => tracing::debug!(%error, "no connection to listen for {}", E::FOR),
            Err(_) => tracing::debug!("no connection to listen for {} in time", E::FOR),
        }
        if rest(pause, &mut orders).await.is_break() {
            return;
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Waits before the next attempt; nobody can be armed meanwhile.
async fn rest(pause: Duration, orders: &mut Orders) -> ControlFlow<()> {
    let end = sleep(pause);
    tokio::pin!(end);
    loop {
        tokio::select! {
            () = &mut end => return ControlFlow::Continue(()),
            order = orders.recv() => match order {
                None => return ControlFlow::Break(()),
                // Whoever asked may have gone away.
                Some(Order::Arm(reply)) => drop(reply.send(false)),
                Some(Order::Disarm) => {}
            },
        }
    }
}

/// What became of an attempt to sit down.
enum Seat {
    Taken,
    /// Another process has it.
    Occupied,
    /// Somebody who found nobody asleep has a long transaction.
    Delayed,
}

/// A connection that listens.
struct Session<E> {
    ear: Arc<E>,
    client: Client,
    arm: Statement,
    disarm: Statement,
    /// One for each notification that is for the sleeper in the seat.
    heard: mpsc::UnboundedReceiver<()>,
    /// Whether it has the seat, so that everybody notifies.
    seated: bool,
    /// Whether a sleeper of this process wants the seat.
    wanted: bool,
    /// Whether the sleeper was rung for since it last asked for the seat.
    rung: bool,
    /// When to try again for the seat.
    again: Interval,
}

fn every(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

impl<E: Ear> Session<E> {
    async fn open(address: &Address, ear: &Arc<E>) -> Result<Self, Error> {
        let (client, mut connection) = address.config.connect(address.tls.clone()).await?;
        let (tell, heard) = mpsc::unbounded_channel();
        let rings = Arc::clone(ear);
        // Ends with the client or the server; either way nothing is heard any more.
        tokio::spawn(async move {
            let mut messages =
                futures::stream::poll_fn(move |context| connection.poll_message(context));
            while let Some(Ok(message)) = messages.next().await {
                if let AsyncMessage::Notification(notification) = message {
                    let payload = notification.payload();
                    // Told before the bell: who is woken by it may ask for the seat at once, and that must come second.
                    if rings.is_for_sleeper(payload) {
                        let _ = tell.send(());
                    }
                    // Right here: every hop between tasks is latency.
                    rings.ring_for(payload);
                }
            }
        });
        client.batch_execute(SETTLE_IN).await?;
        client.batch_execute(E::LISTEN).await?;
        Ok(Self {
            ear: Arc::clone(ear),
            arm: client.prepare(E::ARM).await?,
            disarm: client.prepare(DISARM).await?,
            client,
            heard,
            seated: false,
            wanted: false,
            rung: false,
            again: every(TRY_AGAIN),
        })
    }

    /// Serves until the store is gone (break) or the connection is (continue).
    async fn serve(&mut self, orders: &mut Orders) -> ControlFlow<()> {
        let mut ask = every(E::ASK);
        loop {
            let done = tokio::select! {
                biased;
                heard = self.heard.recv() => match heard {
                    None => return ControlFlow::Continue(()),
                    Some(()) if E::STANDS_UP_AT_ONCE => self.stand_up().await,
                    Some(()) => {
                        self.rung = true;
                        Some(())
                    }
                },
                order = orders.recv() => match order {
                    None => return ControlFlow::Break(()),
                    Some(Order::Arm(reply)) => {
                        self.wanted = true;
                        self.rung = false;
                        self.sit_down().await.map(|seat| {
                            // Whoever asked may have gone away; then the seat is not needed and given back.
                            let _ = reply.send(matches!(seat, Seat::Taken));
                        })
                    }
                    Some(Order::Disarm) => self.stand_up().await,
                },
                _ = ask.tick(), if self.seated || self.wanted => {
                    let needed = self.ear.is_needed() && !self.rung;
                    if needed { Some(()) } else { self.stand_up().await }
                }
                _ = self.again.tick(), if self.wanted && !self.seated => self.try_again().await,
            };
            if done.is_none() {
                return ControlFlow::Continue(());
            }
        }
    }

    async fn try_again(&mut self) -> Option<()> {
        match self.sit_down().await? {
            // What came before was not told to this process.
            Seat::Taken | Seat::Delayed => self.ear.ring_sleeper(),
            Seat::Occupied => {}
        }
        Some(())
    }

    /// Tries to take the seat; none if the connection is of no use any more.
    async fn sit_down(&mut self) -> Option<Seat> {
        let mut seat = Seat::Taken;
        if !self.seated {
            let asked = self.client.query_one(&self.arm, &[]);
            match timeout(SILENCE, asked).await.ok()? {
                Ok(row) if row.get("taken") => self.seated = true,
                Ok(_) => seat = Seat::Occupied,
                Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                    self.give_back().await?;
                    self.again.reset_after(TRY_LATER);
                    seat = Seat::Delayed;
                }
                Err(_) => return None,
            }
        }
        self.ear.armed().store(self.seated, Ordering::Relaxed);
        Some(seat)
    }

    async fn stand_up(&mut self) -> Option<()> {
        self.wanted = false;
        self.rung = false;
        self.ear.armed().store(false, Ordering::Relaxed);
        if self.seated {
            self.give_back().await?;
        }
        Some(())
    }

    async fn give_back(&mut self) -> Option<()> {
        let asked = self.client.query_one(&self.disarm, &[]);
        timeout(SILENCE, asked).await.ok()?.ok()?;
        self.seated = false;
        Some(())
    }
}
