//! A compact form of timelines for cases.

use crate::Fixture;
use crate::factory::known;
use leasehold_core::{RequestId, RequestStatus, WorkspaceId};
use leasehold_store::change::Event;

/// One transition: from, to, author, reason.
pub type TimelineStep<'a> = (
    Option<RequestStatus>,
    RequestStatus,
    &'a str,
    Option<&'a str>,
);

/// The transition of an event, without its time.
pub fn step(event: &Event) -> TimelineStep<'_> {
    (
        event.from.as_ref().map(known),
        known(&event.to),
        &event.by,
        event.reason.as_deref(),
    )
}

impl Fixture {
    /// Asserts that the request has exactly this timeline.
    ///
    /// # Panics
    /// When it is not.
    pub async fn assert_timeline(
        &self,
        workspace: WorkspaceId,
        request: RequestId,
        expected: &[TimelineStep<'_>],
    ) {
        let events = self.timeline(workspace, request).await;
        let steps: Vec<TimelineStep<'_>> = events.iter().map(step).collect();
        assert_eq!(steps, expected);
        for event in &events {
            assert_eq!((event.request, event.workspace), (request, workspace));
        }
    }
}
