//! An estimate of the memory that a JSON text takes once it is parsed into a tree. Reads the text without building the tree.

use super::strings::string_length;
use std::mem::size_of;

/// Memory of one value of a tree.
const VALUE_BYTES: usize = size_of::<serde_json::Value>();
/// Fields of one node of a `BTreeMap`, which is allocated as a whole.
const FIELDS_PER_NODE: usize = 11;
/// Memory of a node of a `BTreeMap` with its allocation.
const NODE_BYTES: usize = FIELDS_PER_NODE * (size_of::<String>() + VALUE_BYTES) + 32;
/// Overhead of an allocation.
const ALLOCATION_BYTES: usize = 16;

/// Returns about how many bytes the parsed document takes. Arrays count twice, because they grow by doubling; nodes of
/// objects count as half full. Never fails: the estimate of a text that is no JSON means nothing.
pub fn tree_bytes(text: &[u8]) -> usize {
    let mut bytes = VALUE_BYTES;
    let mut position = 0;
    while position < text.len() {
        match text[position] {
            b'"' => {
                let length = string_length(&text[position..]);
                bytes += length + ALLOCATION_BYTES;
                position += length;
                continue;
            }
            b'{' => bytes += NODE_BYTES,
            // Another item, or another field.
            b',' => bytes += (2 * VALUE_BYTES).max(NODE_BYTES / FIELDS_PER_NODE * 2),
            b'[' => bytes += 4 * VALUE_BYTES + ALLOCATION_BYTES,
            _ => {}
        }
        position += 1;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_objects_take_many_times_their_text() {
        let objects = format!("[{}]", vec![r#"{"a":1}"#; 1_000].join(","));
        let per_byte = tree_bytes(objects.as_bytes()) / objects.len();
        assert!((50..150).contains(&per_byte), "{per_byte}");
        let string = format!("\"{}\"", "x".repeat(10_000));
        assert!(tree_bytes(string.as_bytes()) < 11_000);
        for text in ["", "\"", "\"\\", "]"] {
            assert!(tree_bytes(text.as_bytes()) < 200, "{text}");
        }
    }
}
