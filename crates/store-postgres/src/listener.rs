//! One connection that listens for what other processes do, and holds the seat of a sleeper. Knows no request.
//!
//! It lives as long as the store that started it, and connects again for ever.

use crate::pool::Address;
use crate::wake::Bells;
use futures::StreamExt;
use leasehold_store::wake::Wake;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_postgres::error::SqlState;
use tokio_postgres::{AsyncMessage, Client, Error, Statement};

const SETTLE_IN: &str = include_str!("../sql/wake/settle_in.sql");
const LISTEN: &str = include_str!("../sql/wake/listen.sql");
const ARM: &str = include_str!("../sql/wake/arm.sql");
const DISARM: &str = include_str!("../sql/wake/disarm.sql");

const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// A server that says nothing for so long is gone. More than arming may wait for open transactions.
const SILENCE: Duration = Duration::from_secs(5);
/// A seat that nobody sleeps in is given back after twice as long at most: its sleeper may be gone for good.
const UNUSED: Duration = Duration::from_secs(5);

/// What a store asks of its listener.
pub(crate) enum Order {
    /// Have everybody notify, and say whether they do.
    Arm(oneshot::Sender<bool>),
    /// Nobody sleeps any more.
    Disarm,
}

type Orders = mpsc::UnboundedReceiver<Order>;

/// Listens until the store is gone.
pub(crate) async fn run(address: Address, bells: Arc<Bells>, mut orders: Orders) {
    let mut pause = SHORTEST_PAUSE;
    loop {
        match timeout(SILENCE, Session::open(&address)).await {
            Ok(Ok(mut session)) => {
                pause = SHORTEST_PAUSE;
                // Whatever happened while nobody listened.
                Wake::ALL.into_iter().for_each(|wake| bells.ring(wake));
                let end = session.serve(&bells, &mut orders).await;
                bells.armed.store(false, Ordering::Relaxed);
                if end.is_break() {
                    return;
                }
                tracing::warn!("the connection that listens for wake-ups is lost");
            }
            Ok(Err(error)) => tracing::debug!(%error, "no connection to listen for wake-ups"),
            Err(_) => tracing::debug!("no connection to listen for wake-ups in time"),
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

/// A connection that listens.
struct Session {
    client: Client,
    arm: Statement,
    disarm: Statement,
    heard: mpsc::UnboundedReceiver<Wake>,
    /// Whether it has the seat, so that everybody notifies.
    seated: bool,
}

impl Session {
    async fn open(address: &Address) -> Result<Self, Error> {
        let (client, mut connection) = address.config.connect(address.tls.clone()).await?;
        let (tell, heard) = mpsc::unbounded_channel();
        // Ends with the client or the server; either way nothing is heard any more.
        tokio::spawn(async move {
            let mut messages =
                futures::stream::poll_fn(move |context| connection.poll_message(context));
            while let Some(Ok(message)) = messages.next().await {
                if let AsyncMessage::Notification(notification) = message {
                    let rung = |wake: &Wake| wake.as_str() == notification.payload();
                    let _ = Wake::ALL.into_iter().find(rung).map(|wake| tell.send(wake));
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
        })
    }

    /// Serves until the store is gone (break) or the connection is (continue).
    async fn serve(&mut self, bells: &Bells, orders: &mut Orders) -> ControlFlow<()> {
        let mut watch = interval(UNUSED);
        watch.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let done = tokio::select! {
                biased;
                heard = self.heard.recv() => match heard {
                    None => return ControlFlow::Continue(()),
                    Some(wake) => {
                        bells.ring(wake);
                        // The sleeper is awake now, and takes its seat again before it sleeps.
                        if wake == Wake::Work { self.stand_up(bells).await } else { Some(()) }
                    }
                },
                order = orders.recv() => match order {
                    None => return ControlFlow::Break(()),
                    Some(Order::Arm(reply)) => self.sit_down(bells).await.map(|seated| {
                        // Whoever asked may have gone away; then the seat is unused and given back.
                        let _ = reply.send(seated);
                    }),
                    Some(Order::Disarm) => self.stand_up(bells).await,
                },
                _ = watch.tick(), if self.seated => {
                    if bells.is_used() { Some(()) } else { self.stand_up(bells).await }
                }
            };
            if done.is_none() {
                return ControlFlow::Continue(());
            }
        }
    }

    /// Takes the seat, and says whether it has it; none if the connection is of no use any more.
    async fn sit_down(&mut self, bells: &Bells) -> Option<bool> {
        if !self.seated {
            let asked = self.client.query_one(&self.arm, &[]);
            match timeout(SILENCE, asked).await.ok()? {
                Ok(row) => self.seated = row.get("taken"),
                // Somebody who found nobody asleep has a long transaction.
                Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                    self.give_back().await?;
                }
                Err(_) => return None,
            }
        }
        bells.armed.store(self.seated, Ordering::Relaxed);
        Some(self.seated)
    }

    async fn stand_up(&mut self, bells: &Bells) -> Option<()> {
        bells.armed.store(false, Ordering::Relaxed);
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
