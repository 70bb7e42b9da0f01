//! Layers in front of a store that intercept every call without listing the methods. Knows no method by name.

use crate::store::{CALLS, StoreObserver};
use crate::{Result, Store};
use std::sync::Arc;

/// A store behind a layer that intercepts every fallible call.
pub struct LayeredStore<L> {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) layer: L,
}

impl<L: StoreLayer> LayeredStore<L> {
    /// Puts the layer in front of the store.
    pub fn new(store: Arc<dyn Store>, layer: L) -> Self {
        Self { store, layer }
    }
}

/// A layer in front of a store: runs every fallible call, and observes the results of successful ones.
pub trait StoreLayer: Send + Sync + 'static {
    /// The observer of results; `()` observes nothing.
    type Observer: StoreObserver;

    /// Returns the observer of this layer.
    fn observer(&self) -> &Self::Observer;

    /// Runs a call; awaiting `run` calls the store.
    fn call<T: Send>(
        &self,
        call: StoreCall,
        run: impl Future<Output = Result<T>> + Send,
    ) -> impl Future<Output = Result<T>> + Send;
}

/// The verbs of methods that only read.
const READ_VERBS: &[&str] = &[
    "list", "get", "find", "counts", "overview", "nodes", "output", "slots", "position", "oldest",
    "timeline",
];

/// A fallible method of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreCall {
    index: usize,
    name: &'static str,
}

impl StoreCall {
    /// The number of fallible methods.
    pub const COUNT: usize = {
        let (mut noun, mut count) = (0, 0);
        while noun < CALLS.len() {
            count += CALLS[noun].len();
            noun += 1;
        }
        count
    };

    /// Iterates over all of them, by index.
    pub fn all() -> impl Iterator<Item = Self> {
        let names = CALLS.iter().flat_map(|noun| noun.iter());
        names.enumerate().map(|(index, name)| Self { index, name })
    }

    /// Returns the call of this name.
    ///
    /// # Panics
    /// If no method has this name; in a constant this is a compile error.
    pub const fn named(name: &str) -> Self {
        let (mut noun, mut index) = (0, 0);
        while noun < CALLS.len() {
            let mut method = 0;
            while method < CALLS[noun].len() {
                if is_same(CALLS[noun][method], name) {
                    let name = CALLS[noun][method];
                    return Self { index, name };
                }
                method += 1;
                index += 1;
            }
            noun += 1;
        }
        panic!("no store method that can fail has this name")
    }

    /// Returns its index, below [`Self::COUNT`].
    pub const fn index(self) -> usize {
        self.index
    }

    /// Returns the name of the method.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Whether the method only reads, by its verb.
    pub fn is_read(self) -> bool {
        self.name.split('_').any(|word| READ_VERBS.contains(&word))
    }
}

/// Compares two texts in a constant.
const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::StoreCall;

    #[test]
    fn calls_are_numbered_and_found_by_name() {
        for (index, call) in StoreCall::all().enumerate() {
            assert_eq!(call.index(), index);
            assert_eq!(StoreCall::named(call.name()), call);
        }
        assert_eq!(StoreCall::all().count(), StoreCall::COUNT);
    }

    #[test]
    fn reads_are_known_by_their_verb() {
        for read in [
            "request_list",
            "execution_list_active",
            "change_list",
            "graph_nodes",
        ] {
            assert!(StoreCall::named(read).is_read(), "{read}");
        }
        for change in [
            "request_enqueue",
            "job_claim",
            "workspace_update",
            "key_create",
        ] {
            assert!(!StoreCall::named(change).is_read(), "{change}");
        }
    }
}
