//! Evaluates the keywords that look at one value only.

use super::report::Location;
use super::{Evaluator, Verdict};
use crate::content::Content;
use crate::equality::{ValueHasher, ValueSet, equal};
use crate::format::Format;
use crate::number::Number;
use crate::program::{Bound, Keyword, Names, PatternId, Size, SizeOf, Types, type_name};
use crate::text::{quote, short_json, shorten};
use serde_json::{Map, Value};
use std::cmp::Ordering;

/// Values of `enum` that an error lists.
const LISTED_VALUES: usize = 5;

impl<'p> Evaluator<'p> {
    pub(super) fn assertion(
        &mut self,
        keyword: &'p Keyword,
        value: &Value,
        at: &Location<'_>,
    ) -> Verdict {
        match (keyword, value) {
            (Keyword::Never, _) => self.mismatch(at, "", || "no value is allowed here".to_owned()),
            (Keyword::Type(types), _) => self.types(*types, value, at),
            (Keyword::Const(expected), _) => self.constant(expected, value, at),
            (Keyword::Enum(set), _) => self.enumeration(set, value, at),
            (Keyword::Bound(bound), Value::Number(number)) => {
                self.bound(bound, Number::from(number), at)
            }
            (Keyword::MultipleOf(divisor), Value::Number(number)) => {
                let holds = Number::from(number).is_multiple_of(*divisor);
                self.require(holds, at, "multipleOf", || {
                    format!("must be a multiple of {divisor}, not {number}")
                })
            }
            (Keyword::Size(size), _) => self.size(*size, value, at),
            (Keyword::Pattern(pattern), Value::String(text)) => self.pattern(*pattern, text, at),
            (Keyword::Format(format), Value::String(text)) => self.format(*format, text, at),
            (Keyword::Content(content), Value::String(text)) => self.content(*content, text, at),
            (Keyword::Required(names), Value::Object(fields)) => {
                self.required(names, fields, at, "required")
            }
            (Keyword::DependentRequired(lists), Value::Object(fields)) => {
                self.dependent_required(lists, fields, at)
            }
            (Keyword::UniqueItems, Value::Array(items)) => self.unique_items(items, at),
            _ => Ok(true),
        }
    }

    fn types(&mut self, types: Types, value: &Value, at: &Location<'_>) -> Verdict {
        self.require(types.contain(value), at, "type", || {
            let names: Vec<_> = types.names().collect();
            let (names, found) = (names.join(" or "), type_name(value));
            format!("must be of type {names}, not {found}")
        })
    }

    fn constant(&mut self, expected: &Value, value: &Value, at: &Location<'_>) -> Verdict {
        let holds = equal(expected, value, &mut self.meter)?;
        self.require(holds, at, "const", || match short_json(expected) {
            Some(expected) => format!("must be {expected}"),
            None => "must be the value of `const` in the schema".to_owned(),
        })
    }

    fn enumeration(&mut self, set: &ValueSet, value: &Value, at: &Location<'_>) -> Verdict {
        let holds = set.contains(value, &mut self.meter)?;
        self.require(holds, at, "enum", || {
            let listed = set.values.iter().take(LISTED_VALUES);
            let listed: Option<Vec<_>> = listed.map(short_json).collect();
            match listed {
                Some(listed) if set.values.len() <= LISTED_VALUES => {
                    format!("must be one of {}", listed.join(", "))
                }
                Some(listed) => {
                    let more = set.values.len() - LISTED_VALUES;
                    format!("must be one of {} or {more} more values", listed.join(", "))
                }
                None => "must be one of the values of `enum` in the schema".to_owned(),
            }
        })
    }

    fn bound(&mut self, bound: &Bound, number: Number, at: &Location<'_>) -> Verdict {
        let wanted = if bound.is_upper {
            Ordering::Less
        } else {
            Ordering::Greater
        };
        let compared = number.compare(bound.limit);
        let holds = compared == wanted || !bound.is_exclusive && compared == Ordering::Equal;
        self.require(holds, at, bound.keyword, || {
            let relation = match (bound.is_upper, bound.is_exclusive) {
                (true, true) => "less than",
                (true, false) => "at most",
                (false, true) => "greater than",
                (false, false) => "at least",
            };
            format!("must be {relation} {}, not {number}", bound.limit)
        })
    }

    fn size(&mut self, size: Size, value: &Value, at: &Location<'_>) -> Verdict {
        let (keywords, unit, actual) = match (size.of, value) {
            (SizeOf::String, Value::String(text)) => {
                self.meter.step_bytes(text.len())?;
                let keywords = ["minLength", "maxLength"];
                (keywords, "characters", text.chars().count())
            }
            (SizeOf::Array, Value::Array(items)) => {
                (["minItems", "maxItems"], "items", items.len())
            }
            (SizeOf::Object, Value::Object(fields)) => {
                let keywords = ["minProperties", "maxProperties"];
                (keywords, "properties", fields.len())
            }
            _ => return Ok(true),
        };
        let holds = if size.is_upper {
            actual as u64 <= size.limit
        } else {
            actual as u64 >= size.limit
        };
        self.require(holds, at, keywords[usize::from(size.is_upper)], || {
            let relation = if size.is_upper { "most" } else { "least" };
            format!(
                "must have at {relation} {} {unit}, has {actual}",
                size.limit
            )
        })
    }

    fn pattern(&mut self, pattern: PatternId, text: &str, at: &Location<'_>) -> Verdict {
        let holds = self.matches(pattern, text)?;
        let source = &self.program.patterns[pattern.0 as usize].source;
        self.require(holds, at, "pattern", || {
            format!("must match the pattern {}", shorten(source))
        })
    }

    fn format(&mut self, format: Format, text: &str, at: &Location<'_>) -> Verdict {
        self.meter.step(text.len() as u64)?;
        let name = format.name();
        self.require(format.matches(text), at, "format", || {
            format!("must have the format {name}")
        })
    }

    fn content(&mut self, content: Content, text: &str, at: &Location<'_>) -> Verdict {
        self.meter.step(text.len() as u64)?;
        match content.violated(text) {
            None => Ok(true),
            Some(keyword) => self.mismatch(at, keyword, || {
                let needed = if keyword == "contentEncoding" {
                    "base64"
                } else {
                    "JSON"
                };
                format!("must contain {needed}")
            }),
        }
    }

    fn required(
        &mut self,
        names: &[Box<str>],
        fields: &Map<String, Value>,
        at: &Location<'_>,
        keyword: &'static str,
    ) -> Verdict {
        self.meter.step(names.len() as u64)?;
        match names.iter().find(|name| !fields.contains_key(&***name)) {
            None => Ok(true),
            Some(missing) => self.mismatch(at, keyword, || {
                format!("property {} is required", quote(missing))
            }),
        }
    }

    fn dependent_required(
        &mut self,
        lists: &[(Box<str>, Names)],
        fields: &Map<String, Value>,
        at: &Location<'_>,
    ) -> Verdict {
        for (name, needed) in lists {
            self.meter.step(1)?;
            if fields.contains_key(&**name)
                && !self.required(needed, fields, at, "dependentRequired")?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn unique_items(&mut self, items: &[Value], at: &Location<'_>) -> Verdict {
        let found = ValueHasher::default().find_duplicate(items, &mut self.meter)?;
        match found {
            None => Ok(true),
            Some((first, second)) => self.mismatch(at, "uniqueItems", || {
                format!("items must be different; items {first} and {second} are equal")
            }),
        }
    }
}
