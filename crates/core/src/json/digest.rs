//! A digest of a JSON document that ignores white space and the order of fields. Computed from the stream of values, without a tree.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Number;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

/// A digest of a document: equal for equal documents, and for different ones with a probability of 2^-64. Only for comparisons within one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DocumentDigest(u64);

/// Returns the digest of a document; none if a parser cannot read the text. Besides the text it takes 16 bytes for each field of the objects that
/// are open at one time.
pub fn digest(text: &str) -> Option<DocumentDigest> {
    let ValueDigest(digest) = serde_json::from_str(text).ok()?;
    Some(DocumentDigest(digest))
}

/// What kind of value a digest is of, so that `[]`, `{}` and `""` differ.
#[derive(Hash)]
enum Kind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

fn hash(kind: Kind, value: impl Hash) -> ValueDigest {
    let mut hasher = DefaultHasher::new();
    (kind, value).hash(&mut hasher);
    ValueDigest(hasher.finish())
}

struct ValueDigest(u64);

impl<'de> Deserialize<'de> for ValueDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DigestVisitor)
    }
}

struct DigestVisitor;

impl<'de> Visitor<'de> for DigestVisitor {
    type Value = ValueDigest;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<ValueDigest, E> {
        Ok(hash(Kind::Null, ()))
    }

    fn visit_bool<E>(self, value: bool) -> Result<ValueDigest, E> {
        Ok(hash(Kind::Bool, value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<ValueDigest, E> {
        Ok(hash(Kind::Number, Number::from(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<ValueDigest, E> {
        Ok(hash(Kind::Number, Number::from(value)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<ValueDigest, E> {
        // A number of JSON is finite.
        Ok(hash(Kind::Number, Number::from_f64(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<ValueDigest, E> {
        Ok(hash(Kind::String, value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<ValueDigest, A::Error> {
        let (mut hasher, mut count) = (DefaultHasher::new(), 0usize);
        while let Some(ValueDigest(item)) = items.next_element()? {
            item.hash(&mut hasher);
            count += 1;
        }
        Ok(hash(Kind::Array, (count, hasher.finish())))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<ValueDigest, A::Error> {
        let mut digests: Vec<(u64, u64)> = Vec::new();
        while let Some((ValueDigest(key), ValueDigest(value))) = fields.next_entry()? {
            digests.push((key, value));
        }
        // The sort is stable: of fields with the same name the last one counts, as for a parser.
        digests.sort_by_key(|(key, _)| *key);
        let (mut hasher, mut count) = (DefaultHasher::new(), 0usize);
        for (at, field) in digests.iter().enumerate() {
            if digests.get(at + 1).is_none_or(|next| next.0 != field.0) {
                field.hash(&mut hasher);
                count += 1;
            }
        }
        Ok(hash(Kind::Object, (count, hasher.finish())))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    #[test]
    fn order_of_fields_and_white_space_do_not_matter() {
        let one = digest(r#"{"a": 1, "b": {"c": [1, 2.50], "d": null}}"#);
        let same = digest(r#"{"b":{"d":null,"c":[1,2.5]},"\u0061":1}"#);
        assert!(one.is_some());
        assert_eq!(one, same);
        assert_eq!(digest(r#"{"a":1,"a":2}"#), digest(r#"{"a":2}"#));
        assert_eq!(digest("-0.0"), digest("0.0"));
    }

    #[test]
    fn different_documents_have_different_digests() {
        let texts = [
            "null",
            "true",
            "false",
            "0",
            "1",
            "-1",
            "1.0",
            "\"\"",
            "\"1\"",
            "[]",
            "{}",
            "[[]]",
            "[{}]",
            "[1,2]",
            "[2,1]",
            "[1,[2]]",
            r#"{"a":1}"#,
            r#"{"a":2}"#,
            r#"{"b":1}"#,
            r#"["a",1]"#,
            r#"{"a":{"b":1}}"#,
            r#"{"a":1,"b":1}"#,
        ];
        for (at, one) in texts.iter().enumerate() {
            for other in &texts[at + 1..] {
                assert_ne!(digest(one), digest(other), "{one} {other}");
            }
        }
    }

    #[test]
    fn text_that_cannot_be_read_has_no_digest() {
        for text in ["", "{", "{} {}", "[1e400]", &"[".repeat(200)] {
            assert_eq!(digest(text), None, "{text}");
        }
    }

    fn documents() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-2..3i64).prop_map(Value::from),
            prop_oneof![Just(0.5), Just(1.0)].prop_map(|number: f64| Value::from(number)),
            "[ab]{0,1}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[abc]", inner, 0..3)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    /// Writes a document with the fields of its objects in reverse order.
    fn reversed(value: &Value) -> String {
        match value {
            Value::Object(fields) => {
                let fields: Vec<String> = fields
                    .iter()
                    .rev()
                    .map(|(key, value)| {
                        format!("{}: {}", Value::from(key.as_str()), reversed(value))
                    })
                    .collect();
                format!("{{{}}}", fields.join(" ,"))
            }
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(reversed).collect();
                format!("[{}]", items.join(", "))
            }
            other => other.to_string(),
        }
    }

    proptest! {
        #[test]
        fn digests_are_equal_exactly_for_equal_documents(one in documents(), other in documents()) {
            prop_assert_eq!(digest(&one.to_string()), digest(&reversed(&one)));
            let same = digest(&one.to_string()) == digest(&reversed(&other));
            prop_assert_eq!(same, one == other);
        }
    }
}
