//! The drafts of JSON Schema, and which keywords of each hold subschemas.

/// A draft of JSON Schema, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Dialect {
    Draft4,
    Draft6,
    Draft7,
    Draft2019,
    Draft2020,
}

/// Where the value of a keyword holds subschemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Children {
    /// The value is a schema.
    One,
    /// The value is a boolean or a schema, also in draft 4.
    OneOrBoolean,
    /// The value is a schema or an array of schemas.
    OneOrMany,
    /// The value is a non-empty array of schemas.
    Many,
    /// The value is an object of schemas.
    Named,
    /// The value is an object of schemas or arrays of names.
    NamedOrNames,
}

impl Dialect {
    /// Returns the dialect that a `$schema` names.
    pub(crate) fn from_uri(uri: &str) -> Option<Self> {
        let rest = uri.strip_suffix('#').unwrap_or(uri);
        let rest = rest
            .strip_prefix("https://json-schema.org/")
            .or_else(|| rest.strip_prefix("http://json-schema.org/"))?;
        match rest {
            "draft-04/schema" => Some(Self::Draft4),
            "draft-06/schema" => Some(Self::Draft6),
            "draft-07/schema" => Some(Self::Draft7),
            "draft/2019-09/schema" => Some(Self::Draft2019),
            "draft/2020-12/schema" => Some(Self::Draft2020),
            _ => None,
        }
    }

    /// The keyword that identifies a schema.
    pub(crate) fn id_keyword(self) -> &'static str {
        match self {
            Self::Draft4 => "id",
            Self::Draft6 | Self::Draft7 | Self::Draft2019 | Self::Draft2020 => "$id",
        }
    }

    /// Up to draft 7 a `$ref` replaces its siblings, and names of schemas are fragments of `$id`.
    pub(crate) fn is_legacy(self) -> bool {
        self <= Self::Draft7
    }

    /// `format` is an assertion up to draft 7 and an annotation since.
    pub(crate) fn asserts_formats(self) -> bool {
        self.is_legacy()
    }

    /// Returns where `keyword` holds subschemas, or `None` if it holds none in this dialect.
    pub(crate) fn children(self, keyword: &str) -> Option<Children> {
        let (children, since, until) = match keyword {
            "additionalProperties" => (Children::OneOrBoolean, Self::Draft4, Self::Draft2020),
            "additionalItems" => (Children::OneOrBoolean, Self::Draft4, Self::Draft2019),
            "not" => (Children::One, Self::Draft4, Self::Draft2020),
            "contains" | "propertyNames" => (Children::One, Self::Draft6, Self::Draft2020),
            "if" | "then" | "else" => (Children::One, Self::Draft7, Self::Draft2020),
            "contentSchema" | "unevaluatedItems" | "unevaluatedProperties" => {
                (Children::One, Self::Draft2019, Self::Draft2020)
            }
            "items" if self == Self::Draft2020 => (Children::One, self, self),
            "items" => (Children::OneOrMany, Self::Draft4, Self::Draft2019),
            "allOf" | "anyOf" | "oneOf" => (Children::Many, Self::Draft4, Self::Draft2020),
            "prefixItems" => (Children::Many, Self::Draft2020, Self::Draft2020),
            "properties" | "patternProperties" | "definitions" => {
                (Children::Named, Self::Draft4, Self::Draft2020)
            }
            "$defs" | "dependentSchemas" => (Children::Named, Self::Draft2019, Self::Draft2020),
            "dependencies" => (Children::NamedOrNames, Self::Draft4, Self::Draft2020),
            _ => return None,
        };
        (since <= self && self <= until).then_some(children)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dialect_is_read_from_its_uri_with_and_without_fragment() {
        let cases = [
            ("http://json-schema.org/draft-04/schema#", Dialect::Draft4),
            ("http://json-schema.org/draft-06/schema", Dialect::Draft6),
            ("https://json-schema.org/draft-07/schema#", Dialect::Draft7),
            (
                "https://json-schema.org/draft/2019-09/schema",
                Dialect::Draft2019,
            ),
            (
                "https://json-schema.org/draft/2020-12/schema#",
                Dialect::Draft2020,
            ),
        ];
        for (uri, dialect) in cases {
            assert_eq!(Dialect::from_uri(uri), Some(dialect), "{uri}");
        }
        for uri in ["", "http://json-schema.org/draft-03/schema#", "draft-07"] {
            assert_eq!(Dialect::from_uri(uri), None, "{uri}");
        }
    }

    #[test]
    fn keywords_hold_subschemas_only_in_their_drafts() {
        assert_eq!(Dialect::Draft4.children("contains"), None);
        assert_eq!(Dialect::Draft2020.children("additionalItems"), None);
        assert_eq!(
            Dialect::Draft2019.children("items"),
            Some(Children::OneOrMany)
        );
        assert_eq!(Dialect::Draft2020.children("items"), Some(Children::One));
        assert_eq!(Dialect::Draft7.children("$defs"), None);
    }
}
