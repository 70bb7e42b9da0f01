//! The macro that declares the trait of a noun, so that layers need not list its methods. Knows no noun.

/// Declares the storage trait of a noun, its observer, and its implementation for a [`LayeredStore`](crate::LayeredStore).
///
/// The body is that of an ordinary trait of `async fn` that return [`Result`](crate::Result):
///
/// ```text
/// store_trait! {
///     /// Named locks.
///     pub trait LockStore, observed by LockObserver {
///         /// Acquires a named lock that is free.
///         async fn lock_acquire(&self, request: &LockRequest) -> Result<LockAcquired>;
///     }
/// }
/// ```
///
/// It expands to
/// 1. `LockStore`, for stores to implement under `#[async_trait]`;
/// 2. `LockObserver`, with a method `lock_acquire(&self, request: &LockRequest, answer: &LockAcquired)` that is called after a successful
///    call and does nothing unless overridden; `()` observes nothing;
/// 3. `impl LockStore for LayeredStore`: the layer's [`StoreLayer::call`](crate::StoreLayer::call) around the call of the inner store, then the layer's observer.
///
/// Arguments must be `Copy`: references, ids, numbers. An infallible method goes into a second block, `forwarded` or `forwarded async`;
/// layers do not intercept it.
macro_rules! store_trait {
    (
        $(#[$about:meta])*
        pub trait $store:ident, observed by $observer:ident {
            $(
                $(#[$doc:meta])*
                async fn $name:ident(&self $(, $arg:ident: $type:ty)* $(,)?) -> $result:ident<$answer:ty>;
            )*
        }
        $(forwarded {
            $(
                $(#[$plain_doc:meta])*
                fn $plain:ident(&self) -> $plain_answer:ty;
            )*
        })?
        $(forwarded async {
            $(
                $(#[$wait_doc:meta])*
                async fn $wait:ident(&self, $wait_arg:ident: $wait_type:ty);
            )*
        })?
    ) => {
        $(#[$about])*
        #[::async_trait::async_trait]
        pub trait $store: Send + Sync {
            $(
                $(#[$doc])*
                async fn $name(&self $(, $arg: $type)*) -> $result<$answer>;
            )*
            $($(
                $(#[$plain_doc])*
                fn $plain(&self) -> $plain_answer;
            )*)?
            $($(
                $(#[$wait_doc])*
                async fn $wait(&self, $wait_arg: $wait_type);
            )*)?
        }

        impl dyn $store {
            /// The names of the fallible methods, in the order of the trait.
            pub(crate) const CALLS: &'static [&'static str] = &[$(stringify!($name)),*];
        }

        #[doc = concat!("Observes the results of successful calls of a [`", stringify!($store), "`]. Every method does nothing unless overridden.")]
        #[allow(clippy::ptr_arg, reason = "the answer has the type that the store returns")]
        pub trait $observer: Send + Sync {
            $(
                #[doc = concat!("Observes a successful [`", stringify!($store), "::", stringify!($name), "`].")]
                fn $name(&self $(, $arg: $type)*, answer: &$answer) {
                    let _ = ($($arg,)* answer);
                }
            )*
        }

        impl $observer for () {}

        #[::async_trait::async_trait]
        impl<L: $crate::StoreLayer> $store for $crate::LayeredStore<L> {
            $(
                async fn $name(&self $(, $arg: $type)*) -> $result<$answer> {
                    const CALL: $crate::StoreCall = $crate::StoreCall::named(stringify!($name));
                    let answer = self.layer.call(CALL, self.store.$name($($arg),*)).await;
                    if let Ok(answer) = &answer {
                        $observer::$name(self.layer.observer() $(, $arg)*, answer);
                    }
                    answer
                }
            )*
            $($(
                fn $plain(&self) -> $plain_answer {
                    self.store.$plain()
                }
            )*)?
            $($(
                async fn $wait(&self, $wait_arg: $wait_type) {
                    self.store.$wait($wait_arg).await;
                }
            )*)?
        }
    };
}
pub(crate) use store_trait;
