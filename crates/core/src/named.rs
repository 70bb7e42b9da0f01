//! A name that a record may have from a newer program: a variant of this program's enum, or a text that it does not know.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

/// A name in a record: known to this program or not. Readers show unknown names and count their records; the rules of the core take `T`, so that
/// nothing acts on an unknown one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Named<T> {
    /// A name of this program.
    Known(T),
    /// Another name, which a newer program has written.
    Unknown(Box<str>),
}

impl<T: Copy> Named<T> {
    /// Returns the variant if the name is known.
    pub const fn known(&self) -> Option<T> {
        match self {
            Self::Known(known) => Some(*known),
            Self::Unknown(_) => None,
        }
    }
}

impl<T> From<T> for Named<T> {
    fn from(known: T) -> Self {
        Self::Known(known)
    }
}

impl<T: PartialEq> PartialEq<T> for Named<T> {
    fn eq(&self, other: &T) -> bool {
        match self {
            Self::Known(known) => known == other,
            Self::Unknown(_) => false,
        }
    }
}

impl<T: FromStr> FromStr for Named<T> {
    type Err = Infallible;

    fn from_str(name: &str) -> Result<Self, Infallible> {
        let unknown = |_| Self::Unknown(name.into());
        Ok(name.parse().map_or_else(unknown, Self::Known))
    }
}

impl<T: fmt::Display> fmt::Display for Named<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(known) => known.fmt(f),
            Self::Unknown(name) => f.write_str(name),
        }
    }
}

impl<T: Serialize> Serialize for Named<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Known(known) => known.serialize(serializer),
            Self::Unknown(name) => serializer.serialize_str(name),
        }
    }
}

impl<'de, T: FromStr> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let unknown = |_| Self::Unknown(name.as_str().into());
        Ok(name.parse().map_or_else(unknown, Self::Known))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ExecutionStatus, FailureReason, JobStatus, RequestStatus};
    use serde_json::{Value, from_value, json, to_value};

    #[test]
    fn unknown_name_is_kept_as_it_is_and_equals_no_known_one() {
        let reason: Named<FailureReason> = from_value(json!("of_a_newer_program")).unwrap();
        assert_eq!("of_a_newer_program".parse(), Ok(reason.clone()));
        assert_eq!(reason.known(), None);
        assert!(FailureReason::ALL.iter().all(|known| reason != *known));
        assert_eq!(reason.to_string(), "of_a_newer_program");
        assert_eq!(to_value(&reason).unwrap(), "of_a_newer_program");
        assert!(from_value::<Named<FailureReason>>(json!(7)).is_err());
    }

    #[test]
    fn known_names_read_as_their_variants() {
        fn check<T: Copy + PartialEq + fmt::Debug + fmt::Display + FromStr + Serialize>(all: &[T]) {
            for one in all {
                let read: Named<T> = from_value(Value::from(one.to_string())).unwrap();
                assert_eq!(read.known(), Some(*one));
                assert_eq!(to_value(&read).unwrap(), to_value(one).unwrap());
            }
        }
        check(&RequestStatus::ALL);
        check(&ExecutionStatus::ALL);
        check(&JobStatus::ALL);
        check(&FailureReason::ALL);
    }
}
