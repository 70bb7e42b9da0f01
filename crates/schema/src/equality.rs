//! Equality of JSON values as JSON Schema defines it: numbers by value, objects without order. Every comparison is counted.

use crate::meter::{Meter, ValidationLimit};
use crate::number::Number;
use leasehold_core::limits::VALIDATION_MAX_DEPTH;
use serde_json::Value;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash, Hasher};

/// Whether two values are equal. Recurses no deeper than the shallower of them.
pub(crate) fn equal(a: &Value, b: &Value, meter: &mut Meter) -> Result<bool, ValidationLimit> {
    match (a, b) {
        (Value::Null, Value::Null) => Ok(true),
        (Value::Bool(a), Value::Bool(b)) => Ok(a == b),
        (Value::Number(a), Value::Number(b)) => Ok(Number::from(a) == Number::from(b)),
        (Value::String(a), Value::String(b)) => {
            meter.step_bytes(a.len().min(b.len()))?;
            Ok(a == b)
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (a, b) in a.iter().zip(b) {
                meter.step(1)?;
                if !equal(a, b, meter)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Value::Object(a), Value::Object(b)) if a.len() == b.len() => {
            for (key, a) in a {
                meter.step_bytes(key.len())?;
                match b.get(key) {
                    Some(b) if equal(a, b, meter)? => {}
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// Hashes values so that equal values have equal hashes. The key is random, so a caller cannot choose values that collide.
#[derive(Debug, Default)]
pub(crate) struct ValueHasher(RandomState);

impl ValueHasher {
    pub(crate) fn hash(&self, value: &Value, meter: &mut Meter) -> Result<u64, ValidationLimit> {
        self.hash_at(value, meter, VALIDATION_MAX_DEPTH)
    }

    fn hash_at(
        &self,
        value: &Value,
        meter: &mut Meter,
        depth_left: usize,
    ) -> Result<u64, ValidationLimit> {
        let depth_left = depth_left.checked_sub(1).ok_or(ValidationLimit::Depth)?;
        meter.step(1)?;
        let mut hasher = self.0.build_hasher();
        std::mem::discriminant(value).hash(&mut hasher);
        match value {
            Value::Null => {}
            Value::Bool(value) => value.hash(&mut hasher),
            Value::Number(number) => match Number::from(number) {
                Number::Integer(integer) => integer.hash(&mut hasher),
                Number::Float(float) => float.to_bits().hash(&mut hasher),
            },
            Value::String(text) => {
                meter.step_bytes(text.len())?;
                text.hash(&mut hasher);
            }
            Value::Array(items) => {
                for item in items {
                    self.hash_at(item, meter, depth_left)?.hash(&mut hasher);
                }
            }
            Value::Object(fields) => {
                // A sum, because the order of the fields does not count.
                let mut sum = 0_u64;
                for (key, item) in fields {
                    meter.step_bytes(key.len())?;
                    let item = self.hash_at(item, meter, depth_left)?;
                    sum = sum.wrapping_add(self.0.hash_one((key, item)));
                }
                sum.hash(&mut hasher);
            }
        }
        Ok(hasher.finish())
    }

    /// Returns the indices of two equal items, if there are any.
    pub(crate) fn find_duplicate(
        &self,
        items: &[Value],
        meter: &mut Meter,
    ) -> Result<Option<(usize, usize)>, ValidationLimit> {
        let mut hashes = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            hashes.push((self.hash(item, meter)?, index));
        }
        hashes.sort_unstable();
        for same_hash in hashes.chunk_by(|a, b| a.0 == b.0) {
            for (position, (_, first)) in same_hash.iter().enumerate() {
                for (_, second) in &same_hash[position + 1..] {
                    if equal(&items[*first], &items[*second], meter)? {
                        return Ok(Some((*first, *second)));
                    }
                }
            }
        }
        Ok(None)
    }
}

/// A set of values: those of `enum`.
#[derive(Debug)]
pub(crate) struct ValueSet {
    pub(crate) values: Box<[Value]>,
    hasher: ValueHasher,
    by_hash: HashMap<u64, Vec<u32>>,
    has_arrays: bool,
    has_objects: bool,
}

impl ValueSet {
    pub(crate) fn new(values: &[Value]) -> Result<Self, ValidationLimit> {
        let (hasher, mut meter) = (ValueHasher::default(), Meter::unlimited());
        let mut by_hash: HashMap<u64, Vec<u32>> = HashMap::with_capacity(values.len());
        for (index, value) in (0..).zip(values) {
            let hash = hasher.hash(value, &mut meter)?;
            by_hash.entry(hash).or_default().push(index);
        }
        Ok(Self {
            values: values.into(),
            hasher,
            by_hash,
            has_arrays: values.iter().any(Value::is_array),
            has_objects: values.iter().any(Value::is_object),
        })
    }

    pub(crate) fn contains(
        &self,
        value: &Value,
        meter: &mut Meter,
    ) -> Result<bool, ValidationLimit> {
        // Hashing a large value is not needed for a set of strings and numbers.
        if value.is_array() && !self.has_arrays || value.is_object() && !self.has_objects {
            return Ok(false);
        }
        let hash = self.hasher.hash(value, meter)?;
        for index in self.by_hash.get(&hash).into_iter().flatten() {
            if equal(value, &self.values[*index as usize], meter)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn same(a: &Value, b: &Value) -> bool {
        equal(a, b, &mut Meter::unlimited()).unwrap()
    }

    #[test]
    fn equal_values_have_equal_hashes() {
        let (hasher, mut meter) = (ValueHasher::default(), Meter::unlimited());
        let pairs = [
            (json!(1), json!(1.0)),
            (json!([0, -0.0]), json!([0.0, 0])),
            (json!({"a": 1, "b": [2]}), json!({"b": [2.0], "a": 1})),
            (json!(1e300), json!(1e300)),
        ];
        for (a, b) in pairs {
            assert!(same(&a, &b), "{a} {b}");
            assert_eq!(
                hasher.hash(&a, &mut meter).unwrap(),
                hasher.hash(&b, &mut meter).unwrap()
            );
        }
    }

    #[test]
    fn different_values_are_not_equal() {
        let pairs = [
            (json!(1), json!(true)),
            (json!(0), json!(false)),
            (json!([1, 2]), json!([2, 1])),
            (json!({"a": 1}), json!({"a": 1, "b": 2})),
            (json!({"a": null}), json!({"b": null})),
            (json!("1"), json!(1)),
        ];
        for (a, b) in pairs {
            assert!(!same(&a, &b), "{a} {b}");
        }
    }

    #[test]
    fn duplicates_are_found_by_value() {
        let hasher = ValueHasher::default();
        let find = |items: Value| {
            let items = items.as_array().unwrap().clone();
            hasher
                .find_duplicate(&items, &mut Meter::unlimited())
                .unwrap()
        };
        assert_eq!(find(json!([1, 2, {"a": 1}, {"a": 1.0}])), Some((2, 3)));
        assert_eq!(find(json!([1, true, "1", [1], null, 0, false])), None);
        let many: Vec<Value> = (0..10_000).map(Value::from).collect();
        assert_eq!(find(Value::Array(many)), None);
    }

    #[test]
    fn set_contains_its_values_only() {
        let set = ValueSet::new(&[json!(1), json!("a"), json!({"x": [null]})]).unwrap();
        let has = |value: Value| set.contains(&value, &mut Meter::unlimited()).unwrap();
        assert!(has(json!(1.0)) && has(json!("a")) && has(json!({"x": [null]})));
        assert!(!has(json!(2)) && !has(json!([])) && !has(json!({"x": []})));
    }
}
