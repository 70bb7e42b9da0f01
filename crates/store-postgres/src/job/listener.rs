//! One connection that hears of jobs from other processes, and holds the seat of a sleeping worker. Knows no job.
//!
//! Unlike the dispatcher's listener it does not give up when another process has the seat: workers sleep in many processes, and when
//! one of them wakes and is busy, the next must be told of new jobs. So it tries again until it is seated, and then
//! rings once for what came meanwhile.

use super::wake::Bell;
use crate::pool::Address;
use futures::StreamExt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_postgres::error::SqlState;
use tokio_postgres::{AsyncMessage, Client, Error, Statement};

const SETTLE_IN: &str = include_str!("../../sql/wake/settle_in.sql");
const LISTEN: &str = include_str!("../../sql/wake/job_listen.sql");
const ARM: &str = include_str!("../../sql/wake/job_arm.sql");
const DISARM: &str = include_str!("../../sql/wake/disarm.sql");

const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// A server that says nothing for so long is gone. More than arming may wait for open transactions.
const SILENCE: Duration = Duration::from_secs(5);
/// How long a sleeper without a seat may go unnoticed at most.
const TRY_AGAIN: Duration = Duration::from_millis(250);

/// What a store asks of its listener.
pub(crate) enum Order {
    /// Have everybody notify, and say whether they do.
    Arm(oneshot::Sender<bool>),
    /// Nobody sleeps any more.
    Disarm,
}

type Orders = mpsc::UnboundedReceiver<Order>;

/// Listens until the store is gone.
pub(super) async fn run(address: Address, bell: Arc<Bell>, mut orders: Orders) {
    let mut pause = SHORTEST_PAUSE;
    loop {
        match timeout(SILENCE, Session::open(&address, &bell)).await {
            Ok(Ok(mut session)) => {
                pause = SHORTEST_PAUSE;
                // Whatever happened while nobody listened.
                bell.ring();
                let end = session.serve(&bell, &mut orders).await;
                bell.armed.store(false, Ordering::Relaxed);
                if end.is_break() {
                    return;
                }
                tracing::warn!("the connection that listens for jobs is lost");
            }
            Ok(Err(error)) => tracing::debug!(%error, "no connection to listen for jobs"),
            Err(_) => tracing::debug!("no connection to listen for jobs in time"),
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
struct Session {
    client: Client,
    arm: Statement,
    disarm: Statement,
    heard: mpsc::UnboundedReceiver<()>,
    /// Whether it has the seat, so that everybody notifies.
    seated: bool,
    /// Whether a sleeper of this process wants the seat.
    wanted: bool,
    /// Whether it rang since a sleeper last asked for the seat.
    rung: bool,
}

impl Session {
    async fn open(address: &Address, bell: &Arc<Bell>) -> Result<Self, Error> {
        let (client, mut connection) = address.config.connect(address.tls.clone()).await?;
        let (tell, heard) = mpsc::unbounded_channel();
        let bell = Arc::clone(bell);
        // Ends with the client or the server; either way nothing is heard any more.
        tokio::spawn(async move {
            let mut messages =
                futures::stream::poll_fn(move |context| connection.poll_message(context));
            while let Some(Ok(message)) = messages.next().await {
                if let AsyncMessage::Notification(_) = message {
                    // Right here: every hop between tasks is latency.
                    bell.ring();
                    let _ = tell.send(());
                }
            }
        });
        client.batch_execute(SETTLE_IN).await?;
        client.batch_execute(LISTEN).await?;
        Ok(Self {
            arm: client.prepare(ARM).await?,
            disarm: client.prepare(DISARM).await?,
            client,
            heard,
            seated: false,
            wanted: false,
            rung: false,
        })
    }

    /// Serves until the store is gone (break) or the connection is (continue).
    async fn serve(&mut self, bell: &Bell, orders: &mut Orders) -> ControlFlow<()> {
        let mut again = interval(TRY_AGAIN);
        again.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let done = tokio::select! {
                biased;
                heard = self.heard.recv() => match heard {
                    None => return ControlFlow::Continue(()),
                    Some(()) => {
                        // Standing up would be in the way of the claim that comes now: it waits until that brought something.
                        self.rung = true;
                        Some(())
                    }
                },
                order = orders.recv() => match order {
                    None => return ControlFlow::Break(()),
                    Some(Order::Arm(reply)) => {
                        self.wanted = true;
                        self.rung = false;
                        self.sit_down(bell).await.map(|seat| {
                            // Whoever asked may have gone away.
                            let _ = reply.send(matches!(seat, Seat::Taken));
                        })
                    }
                    Some(Order::Disarm) => self.stand_up(bell).await,
                },
                _ = again.tick(), if self.seated || self.wanted => self.look_around(bell).await,
            };
            if done.is_none() {
                return ControlFlow::Continue(());
            }
        }
    }

    /// Gives up a seat that nobody needs, or tries again for one that somebody does.
    async fn look_around(&mut self, bell: &Bell) -> Option<()> {
        if bell.is_unheard() || self.rung {
            return self.stand_up(bell).await;
        }
        if self.wanted && !self.seated {
            match self.sit_down(bell).await? {
                // What came before was not told to this process.
                Seat::Taken | Seat::Delayed => bell.ring(),
                Seat::Occupied => {}
            }
        }
        Some(())
    }

    /// Tries to take the seat; none if the connection is of no use any more.
    async fn sit_down(&mut self, bell: &Bell) -> Option<Seat> {
        let mut seat = Seat::Taken;
        if !self.seated {
            let asked = self.client.query_one(&self.arm, &[]);
            match timeout(SILENCE, asked).await.ok()? {
                Ok(row) if row.get("taken") => self.seated = true,
                Ok(_) => seat = Seat::Occupied,
                Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                    self.give_back().await?;
                    seat = Seat::Delayed;
                }
                Err(_) => return None,
            }
        }
        bell.armed.store(self.seated, Ordering::Relaxed);
        Some(seat)
    }

    async fn stand_up(&mut self, bell: &Bell) -> Option<()> {
        self.wanted = false;
        self.rung = false;
        bell.armed.store(false, Ordering::Relaxed);
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
