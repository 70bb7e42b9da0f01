//! Tests of the lookup: it finds what a parser finds, in any text.

use super::*;
use leasehold_testkit::Fuzzer;
use serde_json::Value;

const POINTERS: &[&str] = &[
    "", "/a", "/a/0", "/a/1", "/a/1/b", "/a~1b", "/c", "/c/c", "/01", "/0", "/2/0", "/m~0n", "/",
];

fn lookup<'a>(text: &'a str, pointers: &[&str]) -> Lookup<'a> {
    let mut lookup = Lookup::new(text);
    pointers.iter().for_each(|pointer| lookup.want(pointer));
    lookup.scan();
    lookup
}

#[test]
fn values_are_found_verbatim_with_their_depth() {
    let text = r#" {"a": [1.50, {"b" : "x\"]"}], "a/b": {}, "c":{"c":[[ ]]} } "#;
    let lookup = lookup(text, POINTERS);
    let found = |pointer| lookup.at(pointer).map(|found| (found.text, found.depth));
    assert_eq!(found(""), Some((text.trim(), 4)));
    assert_eq!(found("/a/0"), Some(("1.50", 0)));
    assert_eq!(found("/a/1/b"), Some((r#""x\"]""#, 0)));
    assert_eq!(found("/a~1b"), Some(("{}", 1)));
    assert_eq!(found("/c/c"), Some(("[[ ]]", 2)));
    assert_eq!(found("/2/0"), None);
}

#[test]
fn later_of_two_fields_with_one_name_counts() {
    let lookup = lookup(
        r#"{"c": {"c": 1}, "a": 1, "c": {"d": 2}, "a": [7]}"#,
        POINTERS,
    );
    assert_eq!(lookup.at("/c/c"), None);
    assert_eq!(lookup.at("/a/0").map(|found| found.text), Some("7"));
}

#[test]
fn fuzzed_text_gives_what_a_parser_finds() {
    let examples = [
        r#"{"a":[1,{"b":"x"}],"a/b":{},"c":{"c":[[]]},"m~n":null,"":0}"#,
        r#"[[0],true,[{"a":"\u00e4\\"}],-1.5e3]"#,
        r#"{"\u0061":{"1":{"b":1}},"a":["]","[",{"b":[]}],"01":2,"c":{},"c":1}"#,
    ];
    let tokens = [
        "{", "}", "[", "]", "\"", ":", ",", "\\", " ", "\"a\":", "\"c\":", "0", "null", "\\u0061",
    ];
    Fuzzer::new(&examples).tokens(&tokens).run(|input| {
        let text = String::from_utf8_lossy(input);
        let found = lookup(&text, POINTERS);
        let parsed: Value = serde_json::from_str(&text).map_err(|error| error.classify() as u8)?;
        assert!(found.is_json(), "{text}");
        let mut count = 0;
        for pointer in POINTERS {
            let value = found.at(pointer);
            let read = value.map(|value| serde_json::from_str::<Value>(value.text).unwrap());
            assert_eq!(
                read.as_ref(),
                parsed.pointer(pointer),
                "{pointer} in {text}"
            );
            if let Some(value) = value {
                assert_eq!(value.depth, crate::json::depth(value.text), "{text}");
                count += 1;
            }
        }
        Ok::<_, u8>(count)
    });
}
