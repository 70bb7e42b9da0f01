//! Fuzz tests of what tenants write: schemas with values, patterns, texts with a format, references. All run on the stack of the threads that validate.

use crate::dialect::Dialect;
use crate::format::Format;
use crate::pattern::{self, Pattern};
use crate::{
    PatternProblem, Schema, SchemaProblem, ValidationError, ValidationLimit, ValidationLimits, uri,
};
use leasehold_core::json;
use leasehold_core::limits::{
    PATTERN_MAX_PROGRAM_BYTES, SCHEMA_MAX_BYTES, SCHEMA_MAX_PROGRAM_BYTES, VALIDATION_STACK_BYTES,
};
use leasehold_testkit::Fuzzer;
use serde_json::Value;
use std::hash::Hash;
use std::mem::discriminant;

/// A hundredth of the steps that the server allows: thousands of inputs must run in a second.
const STEPS: u64 = 100_000;
/// Far fewer steps than most validations take.
const FEW_STEPS: u64 = 20;
/// Separates a schema from the value that it is applied to.
const SEPARATOR: u8 = b'\n';

fn fuzz<T: Hash>(fuzzer: Fuzzer, check: impl Fn(&[u8]) -> T + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(VALIDATION_STACK_BYTES);
    let thread = thread.spawn(move || fuzzer.run(check)).unwrap();
    thread.join().unwrap();
}

const SCHEMAS: &[&str] = &[
    "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":[\"string\",\"null\"],\"minLength\":1}},\"required\":[\"a\"],\"additionalProperties\":false}\n{\"a\":\"x\"}",
    "{\"$defs\":{\"a\":{\"$id\":\"x\",\"$anchor\":\"y\",\"items\":{\"$ref\":\"#y\"}}},\"allOf\":[{\"$ref\":\"#/$defs/a\"},{\"$ref\":\"x#y\"}]}\n[[],[[]]]",
    "{\"$schema\":\"http://json-schema.org/draft-07/schema#\",\"if\":{\"const\":1},\"then\":true,\"else\":{\"format\":\"date-time\"},\"dependencies\":{\"a\":[\"b\"]}}\n\"2024-01-01T00:00:00Z\"",
    "{\"$schema\":\"http://json-schema.org/draft-04/schema#\",\"id\":\"http://x/\",\"exclusiveMinimum\":true,\"minimum\":1.5,\"multipleOf\":0.1}\n1e3",
    "{\"$schema\":\"https://json-schema.org/draft/2019-09/schema\",\"$recursiveAnchor\":true,\"properties\":{\"a\":{\"$recursiveRef\":\"#\"}},\"unevaluatedProperties\":false}\n{\"a\":{\"a\":{}}}",
    "{\"$dynamicAnchor\":\"n\",\"prefixItems\":[{\"$dynamicRef\":\"#n\"}],\"contains\":{\"enum\":[1,[1.0],{\"a\":null}]},\"unevaluatedItems\":{\"not\":{}},\"uniqueItems\":true}\n[[1],1,2]",
    "{\"patternProperties\":{\"^a|b$\":{\"pattern\":\"^\\\\p{L}{1,3}$\"}},\"propertyNames\":{\"maxLength\":3},\"dependentSchemas\":{\"a\":{\"minProperties\":2}}}\n{\"ab\":\"\u{e4}\",\"a\":\"\"}",
];
const SCHEMA_TOKENS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    ",",
    "\n",
    "{}",
    "true",
    "null",
    "-1",
    "1e308",
    "0.1",
    "\"$ref\":\"#\"",
    "\"$ref\":\"#/$defs/a\"",
    "\"$id\":\"http://x/y\"",
    "\"$anchor\":\"y\"",
    "\"$dynamicRef\":\"#n\"",
    "\"$recursiveRef\":\"#\"",
    "\"allOf\":[",
    "\"anyOf\":[",
    "\"oneOf\":[",
    "\"not\":{",
    "\"properties\":{\"a\":",
    "\"items\":",
    "\"contains\":",
    "\"minContains\":0",
    "\"unevaluatedProperties\":",
    "\"unevaluatedItems\":",
    "\"pattern\":\"(a|b)*\"",
    "\"uniqueItems\":true",
    "\"enum\":[",
    "\"const\":",
    "\"type\":\"integer\"",
    "\"multipleOf\":1e-300",
    "\"maxLength\":1e300",
    "\"$defs\":{\"a\":",
    "~1",
    "%25",
    "\\u0000",
    "\u{1f432}",
];

/// A compiled schema is within its limits, names places that exist, and gives the same verdict whatever the budget, if it gives one.
#[test]
fn schemas_and_values() {
    let fuzzer = Fuzzer::new(SCHEMAS).tokens(SCHEMA_TOKENS);
    fuzz(fuzzer, |input| {
        let split = input.iter().position(|byte| *byte == SEPARATOR);
        let (schema, value) = input.split_at(split.unwrap_or(input.len()));
        let Ok(document) = json::parse(schema, SCHEMA_MAX_BYTES) else {
            return (0, None, None);
        };
        let schema = match Schema::compile(&document) {
            Ok(schema) => schema,
            Err(error) => {
                let place = document.pointer(&error.path);
                assert!(place.is_some(), "{error} is at {:?}", error.path);
                return (1, Some(discriminant(&error.problem)), None);
            }
        };
        assert!(
            schema.bytes() < 4 * SCHEMA_MAX_PROGRAM_BYTES,
            "{}",
            schema.bytes()
        );
        let value = json::parse(value, SCHEMA_MAX_BYTES).unwrap_or_default();
        let verdict = verdict(&schema, &value, STEPS);
        assert_eq!(verdict, self::verdict(&schema, &value, STEPS));
        match self::verdict(&schema, &value, FEW_STEPS) {
            Verdict::Stopped(limit) => assert_eq!(limit, ValidationLimit::Steps(FEW_STEPS)),
            few => assert_eq!(few, verdict),
        }
        (
            2,
            None::<std::mem::Discriminant<SchemaProblem>>,
            Some(verdict.keyword()),
        )
    });
}

/// A fuzzer that begins with refused schemas would reach no validation.
#[test]
fn examples_are_accepted() {
    for example in SCHEMAS {
        let (schema, value) = example.split_once('\n').unwrap();
        let schema: Value = serde_json::from_str(schema).unwrap();
        assert_eq!(Schema::compile(&schema).map(drop), Ok(()), "{schema}");
        assert!(serde_json::from_str::<Value>(value).is_ok(), "{value}");
    }
    let accepted = PATTERNS.iter().map(|pattern| Pattern::compile(pattern));
    assert!(accepted.filter(Result::is_ok).count() >= PATTERNS.len() - 1);
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Valid,
    /// The keyword that does not match.
    Invalid(&'static str),
    Stopped(ValidationLimit),
}

impl Verdict {
    fn keyword(&self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Invalid(keyword) => keyword,
            Self::Stopped(_) => "stopped",
        }
    }
}

fn verdict(schema: &Schema, value: &Value, steps: u64) -> Verdict {
    let limits = ValidationLimits {
        steps,
        deadline: None,
    };
    match schema.validate(value, limits) {
        Ok(()) => Verdict::Valid,
        Err(ValidationError::Mismatch(mismatch)) => {
            let place = value.pointer(&mismatch.path);
            assert!(place.is_some(), "{mismatch} is at {:?}", mismatch.path);
            Verdict::Invalid(mismatch.keyword)
        }
        Err(ValidationError::LimitExceeded(limit)) => Verdict::Stopped(limit),
    }
}

const PATTERNS: &[&str] = &[
    r"^[a-z\d_.-]+@(?:[^\s.]+\.){1,3}\w{2,}$",
    r"(?<year>\d{4})-(0[1-9]|1[0-2])\b|\p{Lu}*?\P{Script=Greek}",
    r"^\u{1F432}\uD83D\uDC32\x41\cJ\0[\b\]\-]$",
    "(?=a)b|(?<!a)b|(a)\\1|\\k<x>",
    "((a{2,}|b){0,3}|)+",
];
const PATTERN_TOKENS: &[&str] = &[
    "(", ")", "(?:", "(?=", "(?<", "[", "]", "[^", "{", "}", "{2}", "{0,99}", "{,2}", "|", "*",
    "+?", "^", "$", ".", "\\", "\\d", "\\W", "\\b", "\\p{L}", "\\P{", "\\u{", "\\ud83d", "\\x",
    "\\c", "&&", "--", "~~", "-", "(?i)", "#", " ", "\u{e4}", "\n",
];
const TEXTS: [&str; 6] = ["", "a", "ab2-\u{e4}", "2024-12", "\u{1f432}\n", "]\\&~"];

/// An accepted pattern is one of ECMA-262, is within its limits, and means the same inside of a group.
#[test]
fn patterns() {
    let fuzzer = Fuzzer::new(PATTERNS).tokens(PATTERN_TOKENS);
    fuzz(fuzzer, |input| {
        let source = String::from_utf8_lossy(input);
        let compiled = match Pattern::compile(&source) {
            Ok(compiled) => compiled,
            Err(problem) => {
                let is_known = matches!(
                    problem,
                    PatternProblem::LookAround | PatternProblem::BackReference
                );
                assert!(
                    !is_known || pattern::is_valid(&source),
                    "{source}: {problem}"
                );
                return (Some(discriminant(&problem)), 0);
            }
        };
        assert!(pattern::is_valid(&source), "{source}");
        assert!(compiled.bytes <= PATTERN_MAX_PROGRAM_BYTES);
        let grouped = Pattern::compile(&format!("(?:{source})"));
        let mut matching = 0;
        for text in TEXTS {
            assert!(compiled.steps(text.len()) > text.len() as u64);
            let is_match = compiled.is_match(text);
            if let Ok(grouped) = &grouped {
                assert_eq!(grouped.is_match(text), is_match, "{source} with {text:?}");
            }
            matching = 2 * matching + u32::from(is_match);
        }
        let is_syntax = matches!(grouped, Err(PatternProblem::Syntax(_)));
        assert!(!is_syntax, "{source}: {grouped:?}");
        (None, matching)
    });
}

const FORMATS: [&str; 15] = [
    "date",
    "date-time",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "regex",
    "relative-json-pointer",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
];
const FORMATTED: &[&str] = &[
    "2024-02-29T23:59:60.5+01:00",
    "\"a b\"@[127.0.0.1]",
    "http://user:p%40@[::1]:80/a/../b;c?d={e,f*}#g",
    "a-b.example",
    "1/a~1b/~0#",
    "urn:\u{e4}:{+x:3}",
];
const FORMAT_TOKENS: &[&str] = &[
    ":", "/", "//", "?", "#", "@", "%", "%2", "[", "]", "::", ".", "..", "-", "T", "Z", "24:00",
    "60", "{", "}", "{?", "~", "~2", "\"", "\\", " ", "\0", "\u{e4}", "0", "999",
];

#[test]
fn formats() {
    let formats = FORMATS.map(|name| Format::from_name(name, Dialect::Draft7).unwrap());
    let fuzzer = Fuzzer::new(FORMATTED).tokens(FORMAT_TOKENS);
    fuzz(fuzzer, move |input| {
        let text = String::from_utf8_lossy(input);
        let is = |format: Format| format.matches(&text);
        let wider = [
            (Format::Uri, Format::UriReference),
            (Format::Uri, Format::Iri),
            (Format::UriReference, Format::IriReference),
            (Format::Iri, Format::IriReference),
        ];
        for (narrow, wide) in wider {
            assert!(
                !is(narrow) || is(wide),
                "{text:?} is {narrow:?} and not {wide:?}"
            );
        }
        if let Some((date, time)) = text.split_once('T') {
            let parts = Format::Date.matches(date) && Format::Time.matches(time);
            assert!(!parts || is(Format::DateTime), "{text:?}");
        }
        formats.map(is)
    });
}

/// A resolved reference is absolute, so that resolving it again changes nothing.
#[test]
fn references() {
    let fuzzer = Fuzzer::new(FORMATTED).tokens(FORMAT_TOKENS);
    fuzz(fuzzer, |input| {
        let reference = String::from_utf8_lossy(input);
        let resolved = uri::resolve("http://example.com/a/b?c", &reference);
        assert_eq!(
            uri::resolve("http://example.com/a/b?c", &resolved),
            resolved,
            "{reference:?}"
        );
        let parts = uri::split(&resolved);
        (
            parts.scheme.is_some(),
            parts.authority.is_some(),
            parts.query.is_some(),
            parts.path.len().min(9),
        )
    });
}
