//! A layer below the server's pools that stops calls of the store: some hang for ever, some until a switch is turned.

use leasehold_store::{LayeredStore, Result, StoreCall, StoreLayer};
use leasehold_testbed::TestBackend;
use std::sync::Arc;
use tokio::sync::watch;

/// How a stopped call goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stopped {
    ForEver,
    UntilSwitchedOff,
}

/// Stops the calls of one name that begin while the switch is on, and counts them.
struct StoppingCalls {
    name: &'static str,
    stopped: Stopped,
    switch: watch::Receiver<bool>,
    count: watch::Sender<usize>,
}

impl StoreLayer for StoppingCalls {
    type Observer = ();

    fn observer(&self) -> &() {
        &()
    }

    async fn call<T: Send>(
        &self,
        call: StoreCall,
        run: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        if call.name() == self.name && *self.switch.borrow() {
            self.count.send_modify(|stopped| *stopped += 1);
            if self.stopped == Stopped::ForEver {
                std::future::pending::<()>().await;
            }
            // A switch that is gone was turned off.
            let _ = self.switch.clone().wait_for(|on| !on).await;
        }
        run.await
    }
}

/// Lets the store's calls of this name hang for ever that begin while the switch is on. Returns the switch and the number of calls that hang.
pub(crate) fn hanging(
    backend: &mut TestBackend,
    name: &'static str,
    on: bool,
) -> (watch::Sender<bool>, watch::Receiver<usize>) {
    stopping(backend, name, on, Stopped::ForEver)
}

/// Holds the store's calls of this name until the switch, which is on, is turned off. Returns the switch and the number of calls that were held.
pub(crate) fn paused(
    backend: &mut TestBackend,
    name: &'static str,
) -> (watch::Sender<bool>, watch::Receiver<usize>) {
    stopping(backend, name, true, Stopped::UntilSwitchedOff)
}

fn stopping(
    backend: &mut TestBackend,
    name: &'static str,
    on: bool,
    stopped: Stopped,
) -> (watch::Sender<bool>, watch::Receiver<usize>) {
    let (switch, is_on) = watch::channel(on);
    let (count, counted) = watch::channel(0);
    let layer = StoppingCalls {
        name,
        stopped,
        switch: is_on,
        count,
    };
    backend.store = Arc::new(LayeredStore::new(backend.store.clone(), layer));
    (switch, counted)
}
