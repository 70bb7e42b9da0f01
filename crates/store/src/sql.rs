//! SQL statements with includes: `{request/columns}` in a statement is replaced by the text of that file, at compile time.
//!
//! Column lists that several statements share are in one file. A statement stays a constant, so nothing is concatenated at run time,
//! and an unknown include fails the build. Includes may be nested.

/// A text that statements may include by name.
#[derive(Clone, Copy, Debug)]
pub struct Include {
    /// The path of its file without the extension.
    pub name: &'static str,
    /// The text that replaces the name.
    pub text: &'static str,
}

/// Returns the text of a statement of the calling crate: `sql!("request/get")`. The crate root must define the constant `INCLUDES`.
#[macro_export]
#[allow(clippy::crate_in_macro_def)]
macro_rules! sql {
    ($path:literal) => {{
        const RAW: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/", $path, ".sql"));
        const LENGTH: usize = $crate::sql::expanded_length(RAW, crate::INCLUDES);
        const BYTES: [u8; LENGTH] = $crate::sql::expanded(RAW, crate::INCLUDES);
        const TEXT: &str = match ::std::str::from_utf8(&BYTES) {
            Ok(text) => text,
            Err(_) => panic!("the statement is not UTF-8"),
        };
        TEXT
    }};
}

/// Builds the list of includes of a crate, from files and texts: `includes!["request/columns", …; "schema" => "main"]`.
#[macro_export]
macro_rules! includes {
    ($($path:literal),* $(,)? $(; $($name:literal => $text:expr),* $(,)?)?) => {
        &[$($crate::sql::Include {
            name: $path,
            text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/", $path, ".sql")),
        },)* $($($crate::sql::Include {
            name: $name,
            text: $text,
        },)*)?]
    };
}

/// Expands the includes of a statement that was read from a file.
pub fn expand(raw: &str, includes: &[Include]) -> String {
    includes.iter().fold(raw.to_owned(), |text, include| {
        let name = format!("{{{}}}", include.name);
        if !text.contains(&name) {
            return text;
        }
        text.replace(&name, &expand(include.text, includes))
    })
}

/// Returns the length of a statement with its includes.
#[doc(hidden)]
pub const fn expanded_length(raw: &str, includes: &[Include]) -> usize {
    let raw = raw.as_bytes();
    let (mut at, mut length) = (0, 0);
    while at < raw.len() {
        match include_at(raw, at, includes) {
            Some(include) => {
                length += expanded_length(include.text, includes);
                at += include.name.len() + 2;
            }
            None => {
                length += 1;
                at += 1;
            }
        }
    }
    length
}

/// Expands the includes of a statement at compile time.
#[doc(hidden)]
pub const fn expanded<const LENGTH: usize>(raw: &str, includes: &[Include]) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    write_expanded(raw, includes, &mut bytes, 0);
    bytes
}

/// Writes a statement with its includes from an offset on, and returns the end offset.
const fn write_expanded(raw: &str, includes: &[Include], bytes: &mut [u8], from: usize) -> usize {
    let raw = raw.as_bytes();
    let (mut at, mut to) = (0, from);
    while at < raw.len() {
        match include_at(raw, at, includes) {
            Some(include) => {
                to = write_expanded(include.text, includes, bytes, to);
                at += include.name.len() + 2;
            }
            None => {
                bytes[to] = raw[at];
                (at, to) = (at + 1, to + 1);
            }
        }
    }
    to
}

/// Returns the include at this offset. A brace before a letter starts an include; `'{}'` in SQL does not.
const fn include_at(raw: &[u8], at: usize, includes: &[Include]) -> Option<Include> {
    if raw[at] != b'{' || at + 1 >= raw.len() || !raw[at + 1].is_ascii_lowercase() {
        return None;
    }
    let mut candidate = 0;
    while candidate < includes.len() {
        let include = includes[candidate];
        if is_name(raw, at + 1, include.name.as_bytes()) {
            return Some(include);
        }
        candidate += 1;
    }
    panic!("the statement includes a file that is not in INCLUDES");
}

const fn is_name(raw: &[u8], from: usize, name: &[u8]) -> bool {
    if from + name.len() >= raw.len() || raw[from + name.len()] != b'}' {
        return false;
    }
    let mut at = 0;
    while at < name.len() {
        if raw[from + at] != name[at] {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const INCLUDES: &[Include] = &[
        Include {
            name: "thing/columns",
            text: "id, {thing/names}",
        },
        Include {
            name: "thing/table",
            text: "things",
        },
        Include {
            name: "thing/names",
            text: "name",
        },
    ];

    #[test]
    fn compile_time_and_run_time_expansion_agree() {
        const RAW: &str = "show {thing/columns} of {thing/table} but not '{}' -- ü";
        const EXPANDED: [u8; expanded_length(RAW, INCLUDES)] = expanded(RAW, INCLUDES);
        let expected = "show id, name of things but not '{}' -- ü";
        assert_eq!(std::str::from_utf8(&EXPANDED), Ok(expected));
        assert_eq!(expand(RAW, INCLUDES), expected);
    }

    #[test]
    #[should_panic(expected = "not in INCLUDES")]
    fn unknown_include_panics() {
        expanded_length("show {thing/colums}", INCLUDES);
    }
}
