//! One random operation, and how they are made. An operation names things by number, so that it fits any state.

use leasehold_core::{ExecutionEnd, Plan};
use proptest::prelude::*;

/// What happens next. Numbers are taken modulo what there is.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "each field is what its name says")]
pub enum Op {
    CreateWorkspace {
        limit: u32,
    },
    SetLimit {
        site: u8,
        limit: Option<u32>,
    },
    SetPlan {
        site: u8,
        plan: Plan,
    },
    SetPaused {
        site: u8,
        paused: bool,
    },
    DeleteWorkspace {
        site: u8,
    },
    /// Deletes the site's definition and gives it another.
    DeleteDefinition {
        site: u8,
    },
    Publish {
        site: u8,
    },
    Enqueue {
        site: u8,
        n: u8,
        priority: i16,
        delay: u8,
        key: Option<u8>,
        window: Option<u8>,
        other: bool,
    },
    Claim {
        owner: u8,
        batch: u32,
    },
    Settle,
    /// Asks how many go before a request.
    Place {
        request: u8,
        up_to: u32,
    },
    Renew {
        pick: Pick,
    },
    Dispatched {
        pick: Pick,
    },
    Release {
        pick: Pick,
        kind: Kind,
        delay: u8,
        error: bool,
    },
    Fail {
        pick: Pick,
    },
    Recover {
        limit: u32,
    },
    Cancel {
        request: u8,
        force: bool,
    },
    /// Tells the engine of wishes to cancel, and of them it is noted.
    TellCancel {
        limit: u32,
        outdated: bool,
    },
    Finish {
        pick: Pick,
        end: ExecutionEnd,
        error: bool,
    },
    Redrive {
        request: u8,
    },
    RedriveMany {
        site: u8,
    },
    Advance {
        seconds: u8,
    },
    Prune {
        completed: Option<u8>,
        failed: Option<u8>,
    },
}

/// Which claim or execution an operation is about.
#[derive(Clone, Copy, Debug)]
pub struct Pick {
    /// Which of those that fit.
    pub(super) n: u8,
    /// Any request instead of one that fits, or an owner or token that does not.
    pub(super) stray: Stray,
}

/// How an operation misses its aim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stray {
    /// It does not.
    No,
    /// Any request, whatever its status.
    Any,
    /// Another owner's.
    Owner,
    /// An old token.
    Token,
}

/// What is known of a start that is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Refused, with so many attempts.
    Refused(u32),
    /// Unknown.
    Unknown,
    /// Not started.
    NotStarted,
}

fn pick() -> impl Strategy<Value = Pick> {
    let stray = prop_oneof![
        12 => Just(Stray::No),
        2 => Just(Stray::Any),
        1 => Just(Stray::Owner),
        1 => Just(Stray::Token),
    ];
    (any::<u8>(), stray).prop_map(|(n, stray)| Pick { n, stray })
}

fn workspace_op() -> impl Strategy<Value = Op> {
    let limit = || prop_oneof![Just(0u32), Just(1), Just(2), Just(3), Just(6)];
    prop_oneof![
        2 => limit().prop_map(|limit| Op::CreateWorkspace { limit }),
        4 => (any::<u8>(), proptest::option::weighted(0.8, limit()))
            .prop_map(|(site, limit)| Op::SetLimit { site, limit }),
        1 => (any::<u8>(), prop::sample::select(Plan::ALL.to_vec()))
            .prop_map(|(site, plan)| Op::SetPlan { site, plan }),
        3 => (any::<u8>(), prop::bool::weighted(0.4))
            .prop_map(|(site, paused)| Op::SetPaused { site, paused }),
        1 => any::<u8>().prop_map(|site| Op::DeleteWorkspace { site }),
        1 => any::<u8>().prop_map(|site| Op::DeleteDefinition { site }),
        1 => any::<u8>().prop_map(|site| Op::Publish { site }),
    ]
}

fn enqueue() -> impl Strategy<Value = Op> {
    let delay = prop_oneof![3 => Just(0u8), 1 => 1..20u8];
    let key = proptest::option::weighted(0.25, 0..3u8);
    let window = proptest::option::weighted(0.6, 1..30u8);
    let other = prop::bool::weighted(0.2);
    (any::<u8>(), 1..5u8, -1..=1i16, delay, key, window, other).prop_map(
        |(site, n, priority, delay, key, window, other)| Op::Enqueue {
            site,
            n,
            priority,
            delay,
            key,
            window,
            other,
        },
    )
}

fn release() -> impl Strategy<Value = Op> {
    let kind = prop_oneof![
        (1..4u32).prop_map(Kind::Refused),
        Just(Kind::Unknown),
        Just(Kind::NotStarted),
    ];
    let delay = prop_oneof![2 => Just(0u8), 1 => 1..20u8];
    (pick(), kind, delay, any::<bool>()).prop_map(|(pick, kind, delay, error)| Op::Release {
        pick,
        kind,
        delay,
        error,
    })
}

fn sweep_op() -> impl Strategy<Value = Op> {
    let age = || proptest::option::weighted(0.6, 0..30u8);
    prop_oneof![
        3 => (1..5u32).prop_map(|limit| Op::Recover { limit }),
        4 => (0..20u8).prop_map(|seconds| Op::Advance { seconds }),
        1 => (age(), age()).prop_map(|(completed, failed)| Op::Prune { completed, failed }),
        1 => Just(Op::Settle),
    ]
}

/// Any operation, the usual ones more often.
pub(super) fn op() -> impl Strategy<Value = Op> {
    let end = prop::sample::select(ExecutionEnd::ALL.to_vec());
    prop_oneof![
        10 => workspace_op(),
        16 => enqueue(),
        20 => (0..3u8, 1..7u32).prop_map(|(owner, batch)| Op::Claim { owner, batch }),
        3 => pick().prop_map(|pick| Op::Renew { pick }),
        8 => pick().prop_map(|pick| Op::Dispatched { pick }),
        10 => release(),
        2 => pick().prop_map(|pick| Op::Fail { pick }),
        5 => (any::<u8>(), prop::bool::weighted(0.3))
            .prop_map(|(request, force)| Op::Cancel { request, force }),
        2 => (1..4u32, prop::bool::weighted(0.2))
            .prop_map(|(limit, outdated)| Op::TellCancel { limit, outdated }),
        12 => (pick(), end, any::<bool>())
            .prop_map(|(pick, end, error)| Op::Finish { pick, end, error }),
        3 => any::<u8>().prop_map(|request| Op::Redrive { request }),
        2 => any::<u8>().prop_map(|site| Op::RedriveMany { site }),
        6 => (any::<u8>(), prop::sample::select(vec![0u32, 1, 3, 1_000]))
            .prop_map(|(request, up_to)| Op::Place { request, up_to }),
        12 => sweep_op(),
    ]
}
