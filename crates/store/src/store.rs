//! The storage port as one trait: the traits of all nouns combined. The module of each noun documents its guarantees, and
//! `store-conformance` tests them.

use crate::audit::{AuditObserver, AuditStore};
use crate::change::{ChangeObserver, ChangeStore};
use crate::database::{DatabaseObserver, DatabaseStore};
use crate::definition::{DefinitionObserver, DefinitionStore};
use crate::drift::{DriftObserver, DriftStore};
use crate::execution::{ExecutionObserver, ExecutionStore};
use crate::graph::{GraphObserver, GraphStore};
use crate::installation::{InstallationObserver, InstallationStore};
use crate::instance::{InstanceObserver, InstanceStore};
use crate::job::{JobObserver, JobStore};
use crate::key::{KeyObserver, KeyStore};
use crate::lock::{LockObserver, LockStore};
use crate::migration::{SchemaObserver, SchemaStore};
use crate::notification::{NotificationObserver, NotificationStore};
use crate::prune::{PruneObserver, PruneStore};
use crate::queue::{QueueObserver, QueueStore};
use crate::request::{RequestObserver, RequestStore};
use crate::workspace::{WorkspaceObserver, WorkspaceStore};

/// Combines the traits of all nouns into one, and their observers into one.
macro_rules! all_nouns {
    ($($store:ident, $observer:ident;)*) => {
        /// A store: the traits of all nouns combined. Implemented for every type that implements them all. On a `dyn Store` and on a
        /// `T: Store` their methods can be called without importing the traits.
        pub trait Store: $($store +)* 'static {}

        impl<T: $($store +)* 'static> Store for T {}

        /// The observers of all nouns combined.
        pub trait StoreObserver: $($observer +)* {}

        impl<T: $($observer +)*> StoreObserver for T {}

        /// The names of the fallible methods, by noun.
        pub(crate) const CALLS: &[&[&str]] = &[$(<dyn $store>::CALLS),*];
    };
}

all_nouns! {
    DatabaseStore, DatabaseObserver;
    InstallationStore, InstallationObserver;
    SchemaStore, SchemaObserver;
    WorkspaceStore, WorkspaceObserver;
    DefinitionStore, DefinitionObserver;
    RequestStore, RequestObserver;
    ExecutionStore, ExecutionObserver;
    DriftStore, DriftObserver;
    LockStore, LockObserver;
    KeyStore, KeyObserver;
    AuditStore, AuditObserver;
    InstanceStore, InstanceObserver;
    ChangeStore, ChangeObserver;
    NotificationStore, NotificationObserver;
    PruneStore, PruneObserver;
    QueueStore, QueueObserver;
    JobStore, JobObserver;
    GraphStore, GraphObserver;
}
