//! The reference that is stored as the payload of a node's job. A claim replaces it by the payload, which it builds from params and outputs.

use super::NodeKind;
use super::input::{Documents, InputProblem};
use super::machine::Machine;
use crate::JsonText;
use serde::{Deserialize, Serialize};

/// What a reference begins with. Other payloads may too, so only jobs of graphs are resolved.
const PREFIX: &str = r#"{"$node":"#;

/// The payload of a node's job until it is claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeReference {
    /// The index in the graph's node list.
    #[serde(rename = "$node")]
    pub node: usize,
    /// The bytes that a claim reads and builds for the job.
    pub bytes: usize,
}

impl NodeReference {
    /// Parses a stored payload; none if it is no reference.
    pub fn read(payload: &JsonText) -> Option<Self> {
        // Most payloads are none, and are not parsed.
        match payload.as_str().starts_with(PREFIX) {
            true => payload.read().ok(),
            false => None,
        }
    }

    /// Returns how many of these jobs one claim may return: those that take at most `max` bytes together, and at least one.
    pub fn fitting(jobs: impl Iterator<Item = Option<Self>>, max: usize) -> usize {
        let mut bytes = 0_usize;
        let fits = |(number, reference): &(usize, Option<Self>)| {
            bytes = bytes.saturating_add(reference.map_or(0, |reference| reference.bytes));
            *number == 0 || bytes <= max
        };
        jobs.enumerate().take_while(fits).count()
    }
}

/// Checks the work of a node and returns the payload to store for its job.
pub(super) fn reference(
    machine: &Machine,
    node: usize,
    documents: &Documents<'_>,
) -> Result<JsonText, InputProblem> {
    if let NodeKind::Delay { .. } = machine.node(node).kind {
        return Ok(JsonText::default());
    }
    let bytes = machine.work_bytes(node, documents)? + documents.bytes_of(machine, node);
    let reference = NodeReference { node, bytes };
    JsonText::of(&reference).map_err(|_| InputProblem::NotJson)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_bytes(bytes: usize) -> Option<NodeReference> {
        Some(NodeReference { node: 0, bytes })
    }

    #[test]
    fn reference_parses_back_and_other_payloads_do_not() {
        let reference = NodeReference { node: 7, bytes: 9 };
        let text = JsonText::of(&reference).unwrap();
        assert_eq!(text.as_str(), r#"{"$node":7,"bytes":9}"#);
        assert_eq!(NodeReference::read(&text), Some(reference));
        for other in [
            "null",
            "{}",
            r#"{"$node":7}"#,
            r#"{"$node":-1,"bytes":9}"#,
            r#"[{"$node":7,"bytes":9}]"#,
        ] {
            let other = JsonText::parse(other).unwrap();
            assert_eq!(NodeReference::read(&other), None);
        }
    }

    #[test]
    fn claim_takes_what_fits_and_at_least_one() {
        let fitting =
            |jobs: &[Option<NodeReference>]| NodeReference::fitting(jobs.iter().copied(), 100);
        assert_eq!(fitting(&[]), 0);
        assert_eq!(fitting(&[of_bytes(60), None, of_bytes(40), None]), 4);
        assert_eq!(fitting(&[of_bytes(60), None, of_bytes(41), None]), 2);
        assert_eq!(fitting(&[of_bytes(101), None]), 1);
        assert_eq!(fitting(&[of_bytes(usize::MAX), of_bytes(usize::MAX)]), 1);
    }
}
