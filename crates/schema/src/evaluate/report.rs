//! Where in a value the evaluation is, and the text of a mismatch.

use super::{Evaluator, Verdict};
use crate::error::Mismatch;
use crate::text::{push_index, push_token};

/// A place in the value: a chain of keys and indices that lives on the stack.
pub(super) struct Location<'a> {
    parent: Option<&'a Location<'a>>,
    segment: Segment<'a>,
}

#[derive(Clone, Copy)]
enum Segment<'a> {
    Root,
    Key(&'a str),
    Index(usize),
}

impl<'a> Location<'a> {
    pub(super) const ROOT: Location<'static> = Location {
        parent: None,
        segment: Segment::Root,
    };

    pub(super) fn key(&'a self, key: &'a str) -> Self {
        Self {
            parent: Some(self),
            segment: Segment::Key(key),
        }
    }

    pub(super) fn index(&'a self, index: usize) -> Self {
        Self {
            parent: Some(self),
            segment: Segment::Index(index),
        }
    }

    fn pointer(&self) -> String {
        let mut segments = Vec::new();
        let mut at = Some(self);
        while let Some(location) = at {
            segments.push(location.segment);
            at = location.parent;
        }
        let mut pointer = String::new();
        for segment in segments.into_iter().rev() {
            match segment {
                Segment::Root => {}
                Segment::Key(key) => push_token(&mut pointer, key),
                Segment::Index(index) => push_index(&mut pointer, index),
            }
        }
        pointer
    }
}

impl Evaluator<'_> {
    /// Records a mismatch, unless it is not an error here.
    pub(super) fn mismatch(
        &mut self,
        at: &Location<'_>,
        keyword: &'static str,
        message: impl FnOnce() -> String,
    ) -> Verdict {
        if self.quiet == 0 {
            self.mismatch = Some(Mismatch {
                path: at.pointer(),
                keyword,
                message: message(),
            });
        }
        Ok(false)
    }

    /// Returns a verdict and records a mismatch if it is negative.
    pub(super) fn require(
        &mut self,
        holds: bool,
        at: &Location<'_>,
        keyword: &'static str,
        message: impl FnOnce() -> String,
    ) -> Verdict {
        if holds {
            return Ok(true);
        }
        self.mismatch(at, keyword, message)
    }
}
