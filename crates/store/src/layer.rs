//! Layers before a store: one that sees or disturbs every call without listing the methods. Knows no method by name.

use crate::store::{CALLS, StoreObserver};
use crate::{Result, Store};
use std::sync::Arc;

/// A store behind a layer that sees every call which can fail.
pub struct LayeredStore<L> {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) layer: L,
}

impl<L: StoreLayer> LayeredStore<L> {
    /// Puts the layer before the store.
    pub fn new(store: Arc<dyn Store>, layer: L) -> Self {
        Self { store, layer }
    }
}

/// What stands before a store: runs every call that can fail, and observes the answers of those that succeeded.
pub trait StoreLayer: Send + Sync + 'static {
    /// Who sees the answers; `()` sees none.
    type Observer: StoreObserver;

    /// The observer of this layer.
    fn observer(&self) -> &Self::Observer;

    /// Runs a call: `run` reaches the store once it is awaited.
    fn call<T: Send>(
        &self,
        call: StoreCall,
        run: impl Future<Output = Result<T>> + Send,
    ) -> impl Future<Output = Result<T>> + Send;
}

/// A method of a store that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreCall {
    index: usize,
    name: &'static str,
}

impl StoreCall {
    /// How many there are.
    pub const COUNT: usize = {
        let (mut noun, mut count) = (0, 0);
        while noun < CALLS.len() {
            count += CALLS[noun].len();
            noun += 1;
        }
        count
    };

    /// All of them, by index.
    pub fn all() -> impl Iterator<Item = Self> {
        let names = CALLS.iter().flat_map(|noun| noun.iter());
        names.enumerate().map(|(index, name)| Self { index, name })
    }

    /// The call of this name.
    ///
    /// # Panics
    /// If there is none; where it is used for a constant, that is an error of the compiler.
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

    /// Its place among all, below [`Self::COUNT`].
    pub const fn index(self) -> usize {
        self.index
    }

    /// The method's name.
    pub const fn name(self) -> &'static str {
        self.name
    }
}

/// Whether two texts are equal, for constants.
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
    fn calls_are_numbered_in_order_and_found_by_name() {
        for (index, call) in StoreCall::all().enumerate() {
            assert_eq!(call.index(), index);
            assert_eq!(StoreCall::named(call.name()), call);
        }
        assert_eq!(StoreCall::all().count(), StoreCall::COUNT);
    }
}
