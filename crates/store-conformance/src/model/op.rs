//! Random operations on requests. An operation refers to things by number, so that it applies to any state.

use leasehold_core::{ExecutionEnd, Plan};
use proptest::prelude::*;

/// An operation. Numbers are taken modulo the number of things.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names of the fields say what they are")]
pub enum Op {
    CreateWorkspace {
        limit: u32,
    },
    SetLimit {
        workspace: u8,
        limit: Option<u32>,
    },
    SetPlan {
        workspace: u8,
        plan: Plan,
    },
    SetPaused {
        workspace: u8,
        paused: bool,
    },
    DeleteWorkspace {
        workspace: u8,
    },
    /// Deletes the workspace's definition and creates another.
    DeleteDefinition {
        workspace: u8,
    },
    Publish {
        workspace: u8,
    },
    Enqueue {
        workspace: u8,
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
    PromoteDue,
    /// Reads the position of a request.
    Position {
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
    /// Lists cancel requests and acknowledges them.
    AcknowledgeCancels {
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
        workspace: u8,
    },
    Advance {
        seconds: u8,
    },
    Prune {
        completed: Option<u8>,
        failed: Option<u8>,
    },
}

/// The claim or execution of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Pick {
    /// The index among those that match.
    pub(super) n: u8,
    /// What is wrong with the claim.
    pub(super) fault: ClaimFault,
}

/// What is wrong with the claim of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClaimFault {
    /// Nothing.
    None,
    /// The request has any status.
    AnyStatus,
    /// Another owner uses it.
    WrongOwner,
    /// It has an old token.
    OldToken,
}

/// The outcome of a start whose claim is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Refused, with this maximum of attempts.
    Refused(u32),
    /// Unknown.
    Unknown,
    /// Not started.
    NotStarted,
}

fn pick() -> impl Strategy<Value = Pick> {
    let fault = prop_oneof![
        12 => Just(ClaimFault::None),
        2 => Just(ClaimFault::AnyStatus),
        1 => Just(ClaimFault::WrongOwner),
        1 => Just(ClaimFault::OldToken),
    ];
    (any::<u8>(), fault).prop_map(|(n, fault)| Pick { n, fault })
}

fn workspace_op() -> impl Strategy<Value = Op> {
    let limit = || prop_oneof![Just(0u32), Just(1), Just(2), Just(3), Just(6)];
    prop_oneof![
        2 => limit().prop_map(|limit| Op::CreateWorkspace { limit }),
        4 => (any::<u8>(), proptest::option::weighted(0.8, limit()))
            .prop_map(|(workspace, limit)| Op::SetLimit { workspace, limit }),
        1 => (any::<u8>(), prop::sample::select(Plan::ALL.to_vec()))
            .prop_map(|(workspace, plan)| Op::SetPlan { workspace, plan }),
        3 => (any::<u8>(), prop::bool::weighted(0.4))
            .prop_map(|(workspace, paused)| Op::SetPaused { workspace, paused }),
        1 => any::<u8>().prop_map(|workspace| Op::DeleteWorkspace { workspace }),
        1 => any::<u8>().prop_map(|workspace| Op::DeleteDefinition { workspace }),
        1 => any::<u8>().prop_map(|workspace| Op::Publish { workspace }),
    ]
}

fn enqueue() -> impl Strategy<Value = Op> {
    let delay = prop_oneof![3 => Just(0u8), 1 => 1..20u8];
    let key = proptest::option::weighted(0.25, 0..3u8);
    let window = proptest::option::weighted(0.6, 1..30u8);
    let other = prop::bool::weighted(0.2);
    (any::<u8>(), 1..5u8, -1..=1i16, delay, key, window, other).prop_map(
        |(workspace, n, priority, delay, key, window, other)| Op::Enqueue {
            workspace,
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
        1 => Just(Op::PromoteDue),
    ]
}

/// Any operation, common ones more often.
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
            .prop_map(|(limit, outdated)| Op::AcknowledgeCancels { limit, outdated }),
        12 => (pick(), end, any::<bool>())
            .prop_map(|(pick, end, error)| Op::Finish { pick, end, error }),
        3 => any::<u8>().prop_map(|request| Op::Redrive { request }),
        2 => any::<u8>().prop_map(|workspace| Op::RedriveMany { workspace }),
        6 => (any::<u8>(), prop::sample::select(vec![0u32, 1, 3, 1_000]))
            .prop_map(|(request, up_to)| Op::Position { request, up_to }),
        12 => sweep_op(),
    ]
}
