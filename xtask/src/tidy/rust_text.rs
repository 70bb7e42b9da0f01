//! Separates code, comments and string literals of a Rust file, well enough for the rules. Pure; not a parser.

/// The parts of a Rust file.
pub(super) struct RustText {
    /// The text with comments, strings and characters blanked out; lines stay in place.
    pub(super) code: String,
    pub(super) strings: Vec<StringLiteral>,
}

/// The content of a string literal, escapes as written, and its line.
pub(super) struct StringLiteral {
    pub(super) line: usize,
    pub(super) content: String,
}

pub(super) fn take_apart(text: &str) -> RustText {
    let mut reader = Reader {
        rest: text,
        line: 1,
        code: String::with_capacity(text.len()),
        strings: Vec::new(),
    };
    while !reader.rest.is_empty() {
        reader.step();
    }
    RustText {
        code: reader.code,
        strings: reader.strings,
    }
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
    code: String,
    strings: Vec<StringLiteral>,
}

impl Reader<'_> {
    /// Reads one comment, literal, word or other character.
    fn step(&mut self) {
        let rest = self.rest;
        if rest.starts_with("//") {
            self.blank(rest.find('\n').unwrap_or(rest.len()));
        } else if rest.starts_with("/*") {
            self.blank(block_comment_length(rest));
        } else if let Some(opening) = string_at(rest) {
            self.string(&opening);
        } else if let Some(length) = character_length(rest) {
            self.blank(length);
        } else {
            let word = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
            let length = word.max(rest.chars().next().map_or(1, char::len_utf8));
            self.keep(length);
        }
    }

    fn string(&mut self, opening: &Opening) {
        let body = &self.rest[opening.length..];
        let end = if opening.raw {
            body.find(&opening.close).unwrap_or(body.len())
        } else {
            escaped_end(body, '"')
        };
        self.strings.push(StringLiteral {
            line: self.line,
            content: body[..end].to_owned(),
        });
        self.blank((opening.length + end + opening.close.len()).min(self.rest.len()));
    }

    fn keep(&mut self, length: usize) {
        let (piece, rest) = self.rest.split_at(length);
        self.line += piece.matches('\n').count();
        self.code.push_str(piece);
        self.rest = rest;
    }

    fn blank(&mut self, length: usize) {
        let (piece, rest) = self.rest.split_at(length);
        self.line += piece.matches('\n').count();
        self.code
            .extend(piece.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        self.rest = rest;
    }
}

pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The delimiters of a string.
struct Opening {
    /// Of prefix, hashes and quote.
    length: usize,
    raw: bool,
    close: String,
}

fn string_at(rest: &str) -> Option<Opening> {
    let prefix = ["br", "cr", "r", "b", "c", ""].into_iter().find(|prefix| {
        rest.strip_prefix(prefix)
            .is_some_and(|after| after.starts_with(['"', '#']))
    })?;
    let after = &rest[prefix.len()..];
    let hashes = after.len() - after.trim_start_matches('#').len();
    let raw = prefix.ends_with('r');
    if !after[hashes..].starts_with('"') || (hashes > 0 && !raw) {
        return None;
    }
    Some(Opening {
        length: prefix.len() + hashes + 1,
        raw,
        close: format!("\"{}", "#".repeat(hashes)),
    })
}

/// The end of the body: the first unescaped quote.
fn escaped_end(body: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in body.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at,
            _ => {}
        }
    }
    body.len()
}

/// The length of a character literal here; lifetimes are none.
fn character_length(rest: &str) -> Option<usize> {
    let body = rest.strip_prefix('\'')?;
    let mut characters = body.char_indices();
    let (_, first) = characters.next()?;
    if first == '\\' {
        return Some((1 + escaped_end(body, '\'') + 1).min(rest.len()));
    }
    let (second, quote) = characters.next()?;
    (quote == '\'').then_some(1 + second + 1)
}

fn block_comment_length(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        let here = &rest.as_bytes()[at..];
        if here.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(text: &str) -> Vec<(usize, String)> {
        take_apart(text)
            .strings
            .into_iter()
            .map(|string| (string.line, string.content))
            .collect()
    }

    #[test]
    fn strings_of_all_kinds_are_found() {
        let text = "a(\"x\\\"y\");\nb(r\"p\\\", r#\"q\"r\"#);\nc(b\"z\", c\"w\");";
        let expected = [(1, "x\\\"y"), (2, "p\\"), (2, "q\"r"), (3, "z"), (3, "w")];
        assert_eq!(
            contents(text),
            expected.map(|(line, content)| (line, content.to_owned()))
        );
    }

    #[test]
    fn comments_and_characters_are_not_code() {
        let text = "x /* { /* \" */ */ y // {\nfor<'a> '{' '\\'' b'\"' '\"' z";
        let apart = take_apart(text);
        assert!(apart.strings.is_empty());
        assert!(!apart.code.contains(['{', '"']));
        let words: Vec<&str> = apart.code.split_whitespace().collect();
        assert_eq!(words, ["x", "y", "for<'a>", "b", "z"]);
        assert_eq!(apart.code.lines().count(), 2);
    }

    #[test]
    fn a_word_that_ends_in_r_opens_no_raw_string() {
        assert_eq!(
            contents("for\"a\"; r#type; \"b\""),
            [(1, "a".to_owned()), (1, "b".to_owned())]
        );
    }
}
