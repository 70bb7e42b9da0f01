//! Limits the length of functions, by counting braces in code.

use super::finding::{Finding, line_of};
use super::rust_text::{is_word, take_apart};

const MOST_LINES: usize = 70;

pub(super) fn not_too_long(path: &str, text: &str) -> Vec<Finding> {
    if !path.ends_with(".rs") {
        return Vec::new();
    }
    let code = take_apart(text).code;
    let mut findings = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        if code[..at].ends_with(is_word) {
            continue;
        }
        let name: String = code[at + 3..]
            .trim_start()
            .chars()
            .take_while(|c| is_word(*c))
            .collect();
        let Some(open) = body(&code, at) else {
            continue;
        };
        let first = line_of(&code, at);
        let lines = line_of(&code, closing_brace(&code, open)) - first + 1;
        if !name.is_empty() && lines > MOST_LINES {
            let message = format!("fn {name} has {lines} lines; the limit is {MOST_LINES}");
            findings.push(Finding::new(path, first, message));
        }
    }
    findings
}

/// The start of the body; a trait declaration has none.
fn body(code: &str, start: usize) -> Option<usize> {
    let mut depth = 0_i32;
    for (at, c) in code[start..].char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            '{' if depth == 0 => return Some(start + at),
            ';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// The end of the block that starts here.
pub(super) fn closing_brace(code: &str, open: usize) -> usize {
    let mut depth = 0_i32;
    for (at, c) in code[open..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return open + at;
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(lines_inside: usize) -> String {
        let body = "    let a = \"}\"; // }\n".repeat(lines_inside);
        format!("//! A.\n\nimpl A {{\nfn long(x: [u8; 2]) {{\n{body}}}\n}}\n")
    }

    #[test]
    fn a_function_stops_at_70_lines() {
        assert_eq!(not_too_long("bench/src/a.rs", &function(68)), []);
        let found = not_too_long("bench/src/a.rs", &function(69));
        assert_eq!(found[0].line(), 4);
        assert!(found[0].to_string().contains("fn long has 71 lines"));
    }

    #[test]
    fn declarations_and_pointers_have_no_body() {
        let text = format!(
            "trait A {{ fn a(&self);\n{} }}\ntype B = fn (u8);\n",
            "\n".repeat(80)
        );
        assert_eq!(not_too_long("bench/src/a.rs", &text), []);
    }
}
