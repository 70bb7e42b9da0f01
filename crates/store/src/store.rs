//! The storage port as one type: the traits of all nouns together. What each promises is said in the file of its noun, and
//! `store-conformance` tests each sentence there.

use crate::capacity::{CapacityObserver, CapacityStore};
use crate::change::{ChangeObserver, ChangeStore};
use crate::database::{DatabaseObserver, DatabaseStore};
use crate::definition::{DefinitionObserver, DefinitionStore};
use crate::execution::{ExecutionObserver, ExecutionStore};
use crate::graph::{GraphObserver, GraphStore};
use crate::instance::{InstanceObserver, InstanceStore};
use crate::job::{JobObserver, JobStore};
use crate::key::{KeyObserver, KeyStore};
use crate::lock::{LockObserver, LockStore};
use crate::migration::{SchemaObserver, SchemaStore};
use crate::prune::{PruneObserver, PruneStore};
use crate::queue::{QueueObserver, QueueStore};
use crate::request::{RequestObserver, RequestStore};
use crate::wake::{WakeObserver, WakeStore};
use crate::workspace::{WorkspaceObserver, WorkspaceStore};

/// Makes one trait of the traits of all nouns, and one observer of their observers.
macro_rules! all_nouns {
    ($($store:ident, $observer:ident;)*) => {
        /// Where everything is kept: the traits of all nouns together. Implemented by implementing those. On a `dyn Store` and on a
        /// `T: Store` their methods can be called without importing them.
        pub trait Store: $($store +)* 'static {}

        impl<T: $($store +)* 'static> Store for T {}

        /// The observers of all nouns together.
        pub trait StoreObserver: $($observer +)* {}

        impl<T: $($observer +)*> StoreObserver for T {}

        /// The names of the methods that can fail, by noun.
        pub(crate) const CALLS: &[&[&str]] = &[$(<dyn $store>::CALLS),*];
    };
}

all_nouns! {
    DatabaseStore, DatabaseObserver;
    SchemaStore, SchemaObserver;
    WorkspaceStore, WorkspaceObserver;
    DefinitionStore, DefinitionObserver;
    RequestStore, RequestObserver;
    ExecutionStore, ExecutionObserver;
    CapacityStore, CapacityObserver;
    LockStore, LockObserver;
    KeyStore, KeyObserver;
    InstanceStore, InstanceObserver;
    ChangeStore, ChangeObserver;
    WakeStore, WakeObserver;
    PruneStore, PruneObserver;
    QueueStore, QueueObserver;
    JobStore, JobObserver;
    GraphStore, GraphObserver;
}
