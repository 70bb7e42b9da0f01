//! Tests of reading a request.

use super::*;
use crate::record::Column;
use leasehold_core::JsonText;
use std::fmt::Display;
use uuid::Uuid;

/// A row with one text column, or without it.
struct Row(std::result::Result<Option<&'static str>, ()>);

impl RecordRow for Row {
    type Error = ();

    fn integer(&self, _: &str) -> std::result::Result<Option<i64>, ()> {
        Err(())
    }
    fn float(&self, _: &str) -> std::result::Result<Option<f64>, ()> {
        Err(())
    }
    fn text(&self, _: &str) -> std::result::Result<Option<String>, ()> {
        self.0.map(|text| text.map(str::to_owned))
    }
    fn uuid(&self, _: &str) -> std::result::Result<Option<Uuid>, ()> {
        Err(())
    }
    fn time(&self, _: &str) -> std::result::Result<Option<Timestamp>, ()> {
        Err(())
    }
    fn json_text(&self, _: &str) -> std::result::Result<Option<JsonText>, ()> {
        Err(())
    }
    fn invalid(&self, _: &str, _: &dyn Display) {}
}

fn failure_reason(row: &Row) -> std::result::Result<Option<Named<FailureReason>>, ()> {
    Column::read(row, "failure_reason")
}

#[test]
fn unknown_reason_is_read_as_text() {
    let known = failure_reason(&Row(Ok(Some("timed_out"))));
    assert_eq!(known, Ok(Some(FailureReason::TimedOut.into())));
    let newer = Named::Unknown("of_a_newer_program".into());
    let read = failure_reason(&Row(Ok(Some("of_a_newer_program"))));
    assert_eq!(read, Ok(Some(newer)));
    assert_eq!(failure_reason(&Row(Ok(None))), Ok(None));
    assert_eq!(failure_reason(&Row(Err(()))), Err(()), "no such column");
}
