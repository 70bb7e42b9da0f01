//! The engine conformance suite on Temporal with the graph worker.

leasehold_engine_conformance::suite!(crate::temporal_fixture::fixture);
