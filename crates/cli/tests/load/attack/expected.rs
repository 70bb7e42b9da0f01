//! What the calls of each attack must get. A call that gets another status, or never gets one that it must get, does not carry out its attack.

use super::{Attack, Record};
use leasehold_testkit::sized;

/// A call, the statuses that it may get, and those that it gets at least once.
type Expected = (&'static str, &'static [u16], &'static [u16]);

const LARGE_JOBS: &[Expected] = &[
    ("enqueue", &[0, 201, 429, 503], &[201, 429]),
    ("claim of some", &[200], &[200]),
    ("claim", &[200, 503], &[]),
];
/// The default quota of a key, 1 GiB, takes longer to reach than a full run.
const LARGE_JOBS_FULL: &[Expected] = &[
    ("enqueue", &[0, 201, 429, 503], &[201]),
    ("claim of some", &[200], &[200]),
    ("claim", &[200, 503], &[]),
];

/// The server may refuse a large body while it is sent, and close the connection: 0.
fn expected(attack: Attack) -> &'static [Expected] {
    match attack {
        Attack::UnreadResponses => &[("get without reading", &[0], &[0])],
        Attack::DoublingSchema | Attack::ChainedSchema => &[("publish", &[422], &[422])],
        Attack::Patterns => &[
            ("publish classes", &[422], &[422]),
            ("publish back-reference", &[422], &[422]),
        ],
        Attack::CostlyValidation => &[("enqueue", &[422, 503], &[422])],
        Attack::Templates => &[
            ("publish too many pointers", &[422], &[422]),
            ("enqueue", &[201, 429], &[201]),
            ("failed request", &[200], &[200]),
        ],
        Attack::TinyObjects => &[("batch", &[0, 200, 429, 503, 504], &[200])],
        Attack::VersionLists => &[("list that is cut", &[200, 503], &[200])],
        Attack::WideGraph => &[
            ("enqueue", &[201, 429], &[201]),
            ("failed request", &[200], &[200]),
        ],
        Attack::ManyLists => &[("list that is cut", &[200, 503], &[200])],
        Attack::ForgedCursors => &[
            ("list", &[200], &[200]),
            ("list after a forged cursor", &[400], &[400]),
        ],
        Attack::Disconnects | Attack::DisconnectedWaits => {
            &[("disconnect", &[0], &[0]), ("list", &[200, 503], &[200])]
        }
        Attack::OldChanges => &[
            ("oldest", &[200], &[200]),
            ("page that ends early", &[200], &[200]),
        ],
        Attack::BulkRedrive => &[
            ("redrive of some", &[200], &[200]),
            ("redrive of none", &[200, 429], &[]),
        ],
        Attack::LargeJobs => sized(LARGE_JOBS, LARGE_JOBS_FULL),
        Attack::LargePublish => &[
            ("publish graph", &[0, 422, 503], &[422]),
            ("publish schema", &[0, 422, 503], &[422]),
        ],
        Attack::LargeFinish | Attack::FanIn => &[
            ("enqueue", &[201, 429, 503], &[201]),
            ("claim", &[200, 503], &[200]),
            ("finish", &[0, 200, 503, 504], &[200]),
        ],
        Attack::EndReports => &[("report", &[204, 429], &[204, 429])],
        Attack::GraphReads => &[("graph", &[503, 504], &[503])],
    }
}

/// Asserts that the calls of an attack got what they must get.
pub(crate) fn assert_expected(attack: Attack, record: &Record) {
    let expected = expected(attack);
    for (call, status) in record.counts.keys() {
        let found = expected.iter().find(|(name, _, _)| name == call);
        assert!(
            found.is_some_and(|(_, allowed, _)| allowed.contains(status)),
            "{attack:?}: {call} got {status}: {}",
            record.shown()
        );
    }
    for (call, _, seen) in expected {
        for status in *seen {
            assert!(
                record.counts.contains_key(&(call, *status)),
                "{attack:?}: {call} never got {status}: {}",
                record.shown()
            );
        }
    }
}
