//! The suite of engines over Temporal with its worker.

leasehold_engine_conformance::suite!(crate::temporal_fixture::fixture);
