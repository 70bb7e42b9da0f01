//! Random operations on jobs. An operation refers to things by number, so that it applies to any state.

use proptest::prelude::*;

/// An operation. Numbers are taken modulo the number of things.
#[derive(Clone, Debug)]
pub(in crate::model) enum JobOp {
    Enqueue {
        queue: u8,
        n: u8,
        group: Option<u8>,
        priority: i16,
        start: Start,
        key: Option<u8>,
        window: Option<u8>,
        max_attempts: Option<u32>,
    },
    Claim {
        queue: u8,
        worker: u8,
        max: u32,
        lease: Option<u8>,
    },
    Renew {
        picks: Vec<JobPick>,
        lease: u8,
    },
    Finish {
        picks: Vec<(JobPick, End)>,
    },
    Progress {
        pick: JobPick,
    },
    Sweep {
        limit: u32,
    },
    Cancel {
        job: u8,
    },
    SetQueue {
        queue: u8,
        limit: Option<Option<u32>>,
        group_limit: Option<Option<u32>>,
        paused: Option<bool>,
        keep: Option<bool>,
        max_attempts: Option<u32>,
    },
    SetLimit {
        limit: Option<u32>,
    },
    Advance {
        seconds: u8,
    },
    Prune {
        completed: Option<u8>,
        failed: Option<u8>,
    },
}

/// When a job may start.
#[derive(Clone, Copy, Debug)]
pub(in crate::model) enum Start {
    Now,
    In(u8),
    Ago(u8),
}

/// How a claim is finished.
#[derive(Clone, Copy, Debug)]
pub(in crate::model) enum End {
    Completed(bool),
    Again,
    AgainAfter(u8),
    Never,
    Snoozed(u8),
    GivenBack,
}

/// The claim of an operation, and what is wrong with it.
#[derive(Clone, Copy, Debug)]
pub(in crate::model) struct JobPick {
    pub(super) n: u8,
    pub(super) fault: ClaimFault,
}

/// What is wrong with the claim of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::model) enum ClaimFault {
    /// Nothing.
    None,
    /// The job has any status.
    AnyStatus,
    /// Another worker uses it.
    WrongWorker,
    /// It has an old token.
    OldToken,
}

fn pick() -> impl Strategy<Value = JobPick> {
    let fault = prop_oneof![
        14 => Just(ClaimFault::None),
        2 => Just(ClaimFault::AnyStatus),
        1 => Just(ClaimFault::WrongWorker),
        1 => Just(ClaimFault::OldToken),
    ];
    (any::<u8>(), fault).prop_map(|(n, fault)| JobPick { n, fault })
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        4 => any::<bool>().prop_map(End::Completed),
        2 => Just(End::Again),
        1 => (0..9u8).prop_map(End::AgainAfter),
        1 => Just(End::Never),
        1 => (0..9u8).prop_map(End::Snoozed),
        1 => Just(End::GivenBack),
    ]
}

fn enqueue() -> impl Strategy<Value = JobOp> {
    let start = prop_oneof![
        4 => Just(Start::Now),
        2 => (0..20u8).prop_map(Start::In),
        1 => (0..20u8).prop_map(Start::Ago),
    ];
    let key = proptest::option::weighted(0.3, 0..3u8);
    let window = proptest::option::weighted(0.5, 1..30u8);
    let max_attempts = proptest::option::weighted(0.4, 1..4u32);
    (
        any::<u8>(),
        1..6u8,
        proptest::option::weighted(0.5, 0..4u8),
        -1..=1i16,
        start,
        key,
        window,
        max_attempts,
    )
        .prop_map(
            |(queue, n, group, priority, start, key, window, max_attempts)| JobOp::Enqueue {
                queue,
                n,
                group,
                priority,
                start,
                key,
                window,
                max_attempts,
            },
        )
}

fn claim() -> impl Strategy<Value = JobOp> {
    let max = prop_oneof![6 => 1..6u32, 1 => Just(0u32), 2 => Just(100u32)];
    let lease = proptest::option::weighted(0.7, 1..25u8);
    (any::<u8>(), 0..3u8, max, lease).prop_map(|(queue, worker, max, lease)| JobOp::Claim {
        queue,
        worker,
        max,
        lease,
    })
}

fn settings() -> impl Strategy<Value = JobOp> {
    let limit = || proptest::option::weighted(0.7, 0..5u32);
    let set = (
        any::<u8>(),
        proptest::option::weighted(0.5, limit()),
        proptest::option::weighted(0.3, limit()),
        proptest::option::weighted(0.4, prop::bool::weighted(0.3)),
        proptest::option::weighted(0.4, any::<bool>()),
        proptest::option::weighted(0.3, 1..4u32),
    );
    prop_oneof![
        3 => set.prop_map(|(queue, limit, group_limit, paused, keep, max_attempts)| JobOp::SetQueue {
            queue,
            limit,
            group_limit,
            paused,
            keep,
            max_attempts,
        }),
        1 => limit().prop_map(|limit| JobOp::SetLimit { limit }),
    ]
}

/// Any operation, common ones more often.
pub(in crate::model) fn job_op() -> impl Strategy<Value = JobOp> {
    let picks = || proptest::collection::vec(pick(), 1..5);
    let ends = proptest::collection::vec((pick(), end()), 1..5);
    let age = || proptest::option::weighted(0.6, 0..30u8);
    prop_oneof![
        16 => enqueue(),
        20 => claim(),
        6 => (picks(), 1..25u8).prop_map(|(picks, lease)| JobOp::Renew { picks, lease }),
        16 => ends.prop_map(|picks| JobOp::Finish { picks }),
        3 => pick().prop_map(|pick| JobOp::Progress { pick }),
        4 => (1..5u32).prop_map(|limit| JobOp::Sweep { limit }),
        4 => any::<u8>().prop_map(|job| JobOp::Cancel { job }),
        7 => settings(),
        10 => (0..20u8).prop_map(|seconds| JobOp::Advance { seconds }),
        2 => (age(), age()).prop_map(|(completed, failed)| JobOp::Prune { completed, failed }),
    ]
}
