//! The compiled form of a schema: a list of nodes that refer to each other by number, so that no schema can make it recursive.

use crate::content::Content;
use crate::equality::ValueSet;
use crate::format::Format;
use crate::number::Number;
use crate::pattern::Pattern;
use serde_json::Value;
use std::collections::HashMap;

/// The number of a subschema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct NodeId(u32);

impl NodeId {
    pub(crate) fn new(index: usize) -> Self {
        // Far more than SCHEMA_MAX_SUBSCHEMAS.
        Self(u32::try_from(index).unwrap_or(u32::MAX))
    }

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The number of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PatternId(pub(crate) u32);

/// A compiled schema.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) nodes: Vec<Node>,
    pub(crate) patterns: Vec<Pattern>,
    /// The nodes of dynamic anchors, by resource and name.
    pub(crate) dynamic_anchors: HashMap<(u32, DynamicName), NodeId>,
    /// An estimate of the memory that all this uses.
    pub(crate) bytes: usize,
}

/// The name that a dynamic reference looks for in the resources that validation has entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum DynamicName {
    /// `$recursiveAnchor` has no name.
    Recursive,
    /// The number of a `$dynamicAnchor`'s name.
    Anchor(u32),
}

/// A compiled subschema.
#[derive(Debug, Default)]
pub(crate) struct Node {
    /// What must hold, cheap keywords first.
    pub(crate) keywords: Box<[Keyword]>,
    pub(crate) unevaluated: Option<Box<Unevaluated>>,
    pub(crate) resource: u32,
}

impl Node {
    /// Whether this is the schema `false`.
    pub(crate) fn is_false(&self) -> bool {
        matches!(*self.keywords, [Keyword::Never])
    }
}

/// `unevaluatedProperties` and `unevaluatedItems`, which look at what all other keywords did.
#[derive(Debug)]
pub(crate) struct Unevaluated {
    pub(crate) properties: Option<NodeId>,
    pub(crate) items: Option<NodeId>,
}

/// Names of properties.
pub(crate) type Names = Box<[Box<str>]>;

/// One thing that must hold.
#[derive(Debug)]
pub(crate) enum Keyword {
    /// The schema `false`.
    Never,
    Type(Types),
    Const(Box<Value>),
    Enum(Box<ValueSet>),
    Bound(Box<Bound>),
    MultipleOf(Number),
    Size(Size),
    Pattern(PatternId),
    Format(Format),
    Content(Content),
    Required(Names),
    /// Names that must be present if another is.
    DependentRequired(Box<[(Box<str>, Names)]>),
    UniqueItems,
    Object(Box<ObjectRules>),
    PropertyNames(NodeId),
    Array(Box<ArrayRules>),
    Contains(Box<Contains>),
    AllOf(Box<[NodeId]>),
    AnyOf(Box<[NodeId]>),
    OneOf(Box<[NodeId]>),
    Not(NodeId),
    If(Box<Conditional>),
    DependentSchemas(Box<[(Box<str>, NodeId)]>),
    Ref(NodeId),
    DynamicRef(Box<DynamicRef>),
}

/// A set of JSON types.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Types {
    pub(crate) bits: u8,
    /// Draft 4: `1.0` is not an integer.
    pub(crate) is_strict: bool,
}

/// The names of JSON types; a bit of [`Types`] each.
pub(crate) const TYPE_NAMES: [&str; 7] = [
    "null", "boolean", "integer", "number", "string", "array", "object",
];

impl Types {
    pub(crate) fn insert(&mut self, name: &str) -> bool {
        match TYPE_NAMES.iter().position(|other| *other == name) {
            Some(bit) => {
                self.bits |= 1 << bit;
                true
            }
            None => false,
        }
    }

    fn has(self, name: &str) -> bool {
        let bit = TYPE_NAMES.iter().position(|other| *other == name);
        bit.is_some_and(|bit| self.bits & (1 << bit) != 0)
    }

    /// Whether the value has one of these types.
    pub(crate) fn contain(self, value: &Value) -> bool {
        match value {
            Value::Number(number) => {
                self.has("number")
                    || self.has("integer")
                        && (!number.is_f64()
                            || !self.is_strict && Number::from(number).is_integer())
            }
            other => self.has(type_name(other)),
        }
    }

    /// The names of these types.
    pub(crate) fn names(self) -> impl Iterator<Item = &'static str> {
        let bits = self.bits;
        TYPE_NAMES
            .into_iter()
            .enumerate()
            .filter(move |(bit, _)| bits & (1 << bit) != 0)
            .map(|(_, name)| name)
    }
}

/// The name of a value's type.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A bound of a number.
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) keyword: &'static str,
    pub(crate) limit: Number,
    pub(crate) is_upper: bool,
    pub(crate) is_exclusive: bool,
}

/// A bound of the length of a string, an array or an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) of: SizeOf,
    pub(crate) limit: u64,
    pub(crate) is_upper: bool,
}

/// What has a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SizeOf {
    String,
    Array,
    Object,
}

/// `properties`, `patternProperties` and `additionalProperties`.
#[derive(Debug, Default)]
pub(crate) struct ObjectRules {
    /// Sorted by name.
    pub(crate) properties: Box<[(Box<str>, NodeId)]>,
    pub(crate) patterns: Box<[(PatternId, NodeId)]>,
    pub(crate) additional: Option<NodeId>,
}

/// `prefixItems` and `items`; `items` and `additionalItems` in older drafts.
#[derive(Debug)]
pub(crate) struct ArrayRules {
    pub(crate) prefix: Box<[NodeId]>,
    pub(crate) rest: Option<NodeId>,
    /// The keyword of `rest`.
    pub(crate) rest_keyword: &'static str,
}

/// `contains` with its bounds.
#[derive(Debug)]
pub(crate) struct Contains {
    pub(crate) schema: NodeId,
    pub(crate) min: u64,
    pub(crate) max: Option<u64>,
    /// Draft 2020-12: items that match are evaluated.
    pub(crate) evaluates: bool,
}

/// `if`, `then` and `else`.
#[derive(Debug)]
pub(crate) struct Conditional {
    pub(crate) condition: NodeId,
    pub(crate) then: Option<NodeId>,
    pub(crate) otherwise: Option<NodeId>,
}

/// `$dynamicRef` or `$recursiveRef` to a dynamic anchor.
#[derive(Debug)]
pub(crate) struct DynamicRef {
    pub(crate) name: DynamicName,
    /// The target if no entered resource has the name.
    pub(crate) default: NodeId,
}
