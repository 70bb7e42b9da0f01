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
}
