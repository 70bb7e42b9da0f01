//! SQL belongs in `.sql` files: finds string literals in Rust code that start like a statement.

use super::finding::Finding;
use super::rust_text::take_apart;

const STATEMENTS: [&str; 9] = [
    "SELECT",
    "INSERT INTO",
    "UPDATE",
    "DELETE FROM",
    "WITH",
    "CREATE",
    "ALTER",
    "DROP",
    "TRUNCATE",
];

pub(super) fn no_sql_in_code(path: &str, text: &str) -> Vec<Finding> {
    if !path.ends_with(".rs") {
        return Vec::new();
    }
    take_apart(text)
        .strings
        .iter()
        .filter(|string| is_statement(&string.content))
        .map(|string| {
            Finding::new(
                path,
                string.line,
                "SQL in Rust code: put it into a .sql file and include it",
            )
        })
        .collect()
}

/// Upper case, and more than the keyword: `"DELETE"` is also an HTTP method.
fn is_statement(content: &str) -> bool {
    let content = skip_blank(content);
    STATEMENTS.iter().any(|statement| {
        content.strip_prefix(statement).is_some_and(|after| {
            let rest = skip_blank(after);
            rest.len() < after.len() && !rest.is_empty()
        })
    })
}

/// Skips white space, literal or escaped.
fn skip_blank(content: &str) -> &str {
    let mut content = content;
    loop {
        let before = content.len();
        content = content.trim_start();
        for escape in ["\\n", "\\t", "\\r", "\\\n"] {
            content = content.strip_prefix(escape).unwrap_or(content);
        }
        if content.len() == before {
            return content;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        let findings = no_sql_in_code("crates/a/tests/b.rs", text);
        findings.iter().map(Finding::line).collect()
    }

    #[test]
    fn every_statement_is_found_in_a_string() {
        for statement in STATEMENTS {
            assert_eq!(
                lines(&format!("let a = 1;\nlet b = \"{statement} x\";")),
                [2]
            );
            assert_eq!(lines(&format!("let b = r#\"\n   {statement}\n x\"#;")), [1]);
            assert_eq!(lines(&format!("let b = \"\\\n  {statement} x\";")), [1]);
        }
    }

    #[test]
    fn words_comments_and_prose_are_not_statements() {
        for statement in STATEMENTS {
            let text = format!("let b = \"{statement}\"; // \"{statement} x\"");
            assert!(lines(&text).is_empty(), "{text}");
        }
        let text = "let b = (\"select one\", \"Update it\", \"WITHOUT x\", \"a SELECT b\");";
        assert!(lines(text).is_empty());
    }
}
