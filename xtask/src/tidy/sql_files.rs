//! The stores' `.sql` files: one statement each, with a first line that describes it.

use super::finding::{Finding, line_of};

pub(super) fn says_what_it_is_for(path: &str, text: &str) -> Vec<Finding> {
    let said = text
        .lines()
        .next()
        .and_then(|line| line.strip_prefix("-- "))
        .is_some_and(|purpose| !purpose.trim().is_empty());
    if !is_operation(path) || said {
        return Vec::new();
    }
    vec![Finding::new(
        path,
        1,
        "does not start with a `-- ` line that describes it",
    )]
}

pub(super) fn one_statement(path: &str, text: &str) -> Vec<Finding> {
    if !is_operation(path) {
        return Vec::new();
    }
    match statements(text).as_slice() {
        [_] => Vec::new(),
        [] => vec![Finding::new(path, 1, "contains no statement")],
        [_, second, ..] => vec![Finding::new(
            path,
            line_of(text, *second),
            "contains more than one statement",
        )],
    }
}

/// Forbids `SELECT *` and `RETURNING a.*` outside subqueries and bodies: a column that a newer program adds would break prepared plans of an older one.
pub(super) fn names_its_columns(path: &str, text: &str) -> Vec<Finding> {
    if !is_operation(path) {
        return Vec::new();
    }
    let finding = |at| {
        Finding::new(
            path,
            line_of(text, at),
            "selects `*`: name the columns, or include them",
        )
    };
    stars(text).into_iter().map(finding).collect()
}

/// The places of `*` or `a.*` as a selected column, outside parentheses, quotes and comments.
fn stars(text: &str) -> Vec<usize> {
    let (mut found, mut depth, mut at) = (Vec::new(), 0_usize, 0);
    // What was read last: a star after a word or a comma selects columns, after an operand it multiplies.
    let mut before = String::new();
    while at < text.len() {
        let rest = &text[at..];
        if let Some(length) = comment_length(rest) {
            at += length;
            continue;
        }
        if let Some(length) = quoted_length(rest) {
            before = "operand".to_owned();
            at += length;
            continue;
        }
        let first = rest.chars().next().unwrap_or(' ');
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
        let length = match is_word(first) {
            true => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let selects = matches!(&*before, "SELECT" | "RETURNING" | "DISTINCT" | "," | ".");
        match first {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '*' if depth == 0 && selects => found.push(at),
            _ => {}
        }
        if !first.is_whitespace() {
            rest[..length].clone_into(&mut before);
        }
        at += length;
    }
    found
}

/// Files in `crates/*/sql/`; migrations and fixtures may contain many statements.
fn is_operation(path: &str) -> bool {
    let mut parts = path.split('/');
    path.ends_with(".sql") && parts.next() == Some("crates") && parts.nth(1) == Some("sql")
}

/// The start of each statement, without comments and blanks.
fn statements(text: &str) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut inside = false;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let first = rest.chars().next().unwrap_or(' ');
        if let Some(length) = comment_length(rest) {
            at += length;
            continue;
        }
        if first == ';' {
            inside = false;
        } else if !first.is_whitespace() && !inside {
            inside = true;
            starts.push(at);
        }
        at += quoted_length(rest).unwrap_or(first.len_utf8());
    }
    starts
}

fn comment_length(rest: &str) -> Option<usize> {
    if rest.starts_with("--") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return Some(rest.find("*/").map_or(rest.len(), |end| end + 2));
    }
    None
}

/// The length of a quoted part, in which semicolons do not count: 'text', "name", $tag$body$tag$.
fn quoted_length(rest: &str) -> Option<usize> {
    let quote = if rest.starts_with(['\'', '"']) {
        &rest[..1]
    } else {
        let tag = rest.strip_prefix('$')?;
        let end = tag.find(|c: char| !c.is_alphanumeric() && c != '_')?;
        // `$1` is a parameter: no dollar follows it.
        if !tag[end..].starts_with('$') {
            return None;
        }
        &rest[..end + 2]
    };
    let body = &rest[quote.len()..];
    let end = body.find(quote).map_or(body.len(), |end| end + quote.len());
    Some(quote.len() + end)
}

#[cfg(test)]
mod tests {
    use super::*;

    // VALUES, because the rule against SQL in Rust code reads this file too.
    const PATH: &str = "crates/store-postgres/sql/request/claim.sql";

    #[test]
    fn file_without_description_is_found() {
        for text in [
            "VALUES (1);\n",
            "--\nVALUES (1);\n",
            "\n-- Late.\nVALUES (1);\n",
        ] {
            assert_eq!(says_what_it_is_for(PATH, text).len(), 1, "{text:?}");
        }
        assert_eq!(says_what_it_is_for(PATH, "-- Why.\nVALUES (1);\n"), []);
    }

    #[test]
    fn missing_or_second_statement_is_found() {
        let found = one_statement(
            PATH,
            "-- Why; because.\nVALUES (1);\n\n-- And.\nVALUES (2);\n",
        );
        assert_eq!(found[0].line(), 5);
        assert_eq!(one_statement(PATH, "-- Why.\n;\n").len(), 1);
    }

    #[test]
    fn semicolons_in_quotes_and_comments_do_not_count() {
        for text in [
            "-- A;\nSELECT ';', 'it''s;', \";\", $1, $2 -- ;\n /* ; */ FROM a;\n-- ;\n",
            "-- A.\nCREATE FUNCTION f() AS $body$ BEGIN a; b; END; $body$;\n",
            "-- A.\nVALUES (1)\n",
        ] {
            assert_eq!(one_statement(PATH, text), [], "{text}");
        }
    }

    #[test]
    fn select_star_is_found() {
        for word in ["SELECT", "RETURNING"] {
            let text = format!("-- Why.\n{word} * FROM a\n");
            assert_eq!(names_its_columns(PATH, &text)[0].line(), 2);
            for list in ["a.*", "a,\n    b.*", "a, *"] {
                let text = format!("-- Why.\n{word} {list} FROM a\n");
                assert_eq!(names_its_columns(PATH, &text).len(), 1, "{text}");
            }
            let text =
                format!("-- Why: *.\n{word} a, b * 2, '.*', count(*) FROM ({word} * FROM b)\n");
            assert_eq!(names_its_columns(PATH, &text), []);
        }
    }

    #[test]
    fn migrations_may_contain_many_statements() {
        let text = "VALUES (1); VALUES (2);";
        assert_eq!(
            one_statement("crates/store-postgres/migrations/0001_a.sql", text),
            []
        );
        assert_eq!(
            says_what_it_is_for("crates/store-postgres/schema.sql", text),
            []
        );
    }
}
