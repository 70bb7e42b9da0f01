//! Tests of the validator from outside, linked into one test program.

#![allow(clippy::unwrap_used)]

mod applicators;
mod assertions;
mod attacks;
mod differential;
mod generate;
mod keyword_values;
mod references;
mod support;
mod unevaluated;
