//! Reads a pattern in the syntax of ECMA-262 and writes it in the syntax of `regex`, in one pass without recursion.

use super::PatternProblem;
use super::escape::Escape;
use std::fmt::Write as _;

/// Characters that `.` does not match.
const NOT_LINE_END: &str = r"[^\n\r\x{2028}\x{2029}]";

/// A translated pattern.
#[derive(Debug)]
pub(super) struct Translated {
    pub(super) source: String,
    /// Characters and classes with all repetitions written out.
    pub(super) positions: u64,
    /// How deep groups nest.
    pub(super) depth: usize,
}

/// Translates a pattern. Refuses what `regex` cannot match in linear time.
pub(super) fn translate(pattern: &str) -> Result<Translated, PatternProblem> {
    let mut translator = Translator::new(pattern);
    translator.run().map_err(PatternProblem::Syntax)?;
    match translator.unsupported {
        Some(problem) => Err(problem),
        None => Ok(Translated {
            positions: translator.groups[0].positions,
            depth: translator.depth,
            source: translator.out,
        }),
    }
}

/// Whether a text is a regular expression of ECMA-262, also one with look-around or back-references.
pub(crate) fn is_valid(pattern: &str) -> bool {
    Translator::new(pattern).run().is_ok()
}

/// An open group, or the whole pattern.
#[derive(Debug, Default)]
struct Group {
    positions: u64,
    /// Positions of the last term, if it can be repeated.
    last: Option<u64>,
    /// Look-behind cannot be repeated.
    is_fixed: bool,
}

/// Reads the pattern from left to right.
pub(super) struct Translator<'p> {
    rest: std::str::Chars<'p>,
    pub(super) out: String,
    groups: Vec<Group>,
    depth: usize,
    unsupported: Option<PatternProblem>,
}

pub(super) type Syntax<T> = Result<T, String>;

impl<'p> Translator<'p> {
    fn new(pattern: &'p str) -> Self {
        Self {
            rest: pattern.chars(),
            out: String::with_capacity(pattern.len() * 2),
            groups: vec![Group::default()],
            depth: 0,
            unsupported: None,
        }
    }

    pub(super) fn next(&mut self) -> Option<char> {
        self.rest.next()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.clone().next()
    }

    pub(super) fn starts_with(&self, text: &str) -> bool {
        self.rest.as_str().starts_with(text)
    }

    /// Takes a text if it comes next.
    pub(super) fn take(&mut self, text: &str) -> bool {
        match self.rest.as_str().strip_prefix(text) {
            Some(rest) => {
                self.rest = rest.chars();
                true
            }
            None => false,
        }
    }

    /// Takes characters while they have a property.
    pub(super) fn take_while(&mut self, has: impl Fn(char) -> bool) -> &'p str {
        let rest = self.rest.as_str();
        let end = rest.find(|c| !has(c)).unwrap_or(rest.len());
        self.rest = rest[end..].chars();
        &rest[..end]
    }

    /// The innermost open group. The whole pattern is the first, which is never closed.
    fn group(&mut self) -> &mut Group {
        let last = self.groups.len() - 1;
        &mut self.groups[last]
    }

    fn run(&mut self) -> Syntax<()> {
        while let Some(c) = self.next() {
            match c {
                '^' | '$' => self.assertion(c.encode_utf8(&mut [0; 4])),
                '|' => self.assertion("|"),
                '(' => self.open()?,
                ')' => self.close()?,
                '[' => {
                    self.class()?;
                    self.term(1);
                }
                '.' => {
                    self.out.push_str(NOT_LINE_END);
                    self.term(1);
                }
                '\\' => self.escape()?,
                '*' | '+' | '?' => self.repeat(1, c.encode_utf8(&mut [0; 4]))?,
                '{' => self.brace()?,
                c => {
                    push_char(&mut self.out, c);
                    self.term(1);
                }
            }
        }
        if self.groups.len() > 1 {
            return Err("a group is not closed".to_owned());
        }
        Ok(())
    }

    /// Writes something that takes no character and cannot be repeated. It counts as a position: matching visits it too.
    fn assertion(&mut self, text: &str) {
        self.out.push_str(text);
        let group = self.group();
        group.positions = group.positions.saturating_add(1);
        group.last = None;
    }

    /// Counts a term of so many positions, which can be repeated.
    fn term(&mut self, positions: u64) {
        let group = self.group();
        group.positions = group.positions.saturating_add(positions);
        group.last = Some(positions);
    }

    fn open(&mut self) -> Syntax<()> {
        let mut is_fixed = false;
        if self.take("?") {
            if self.take("=") || self.take("!") {
                self.unsupported.get_or_insert(PatternProblem::LookAround);
            } else if self.take("<=") || self.take("<!") {
                self.unsupported.get_or_insert(PatternProblem::LookAround);
                is_fixed = true;
            } else if self.take("<") {
                self.name()?;
            } else if !self.take(":") {
                return Err("a group must start with (?: (?= (?! (?<= (?<! (?<name> or (".into());
            }
        }
        // Captures are not needed.
        self.out.push_str("(?:");
        self.groups.push(Group {
            is_fixed,
            ..Group::default()
        });
        self.depth = self.depth.max(self.groups.len() - 1);
        Ok(())
    }

    /// Reads the name of a group and the `>` after it.
    pub(super) fn name(&mut self) -> Syntax<()> {
        let name = self.take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '$'));
        if name.is_empty() || name.starts_with(|c: char| c.is_numeric()) || !self.take(">") {
            return Err("a group name must be an identifier followed by >".to_owned());
        }
        Ok(())
    }

    fn close(&mut self) -> Syntax<()> {
        if self.groups.len() == 1 {
            return Err("a ) has no group".to_owned());
        }
        self.out.push(')');
        let closed = self.groups.pop().unwrap_or_default();
        self.term(closed.positions);
        if closed.is_fixed {
            self.group().last = None;
        }
        Ok(())
    }

    /// Repeats the last term, `most` times if that is written out in the program.
    fn repeat(&mut self, most: u64, text: &str) -> Syntax<()> {
        // Whether it takes as much or as little as possible does not change whether there is a match.
        let group = self.group();
        let Some(last) = group.last.take() else {
            return Err(format!("nothing to repeat before {text}"));
        };
        let more = last.saturating_mul(most.saturating_sub(1));
        group.positions = group.positions.saturating_add(more);
        self.out.push_str(text);
        self.take("?");
        Ok(())
    }

    /// Reads `{n}`, `{n,}` or `{n,m}`; any other brace is a character.
    fn brace(&mut self) -> Syntax<()> {
        let start = self.rest.clone();
        let min = self.take_while(|c| c.is_ascii_digit());
        let comma = self.take(",");
        let max = self.take_while(|c| c.is_ascii_digit());
        if min.is_empty() || (!comma && !max.is_empty()) || !self.take("}") {
            self.rest = start;
            self.out.push_str(r"\{");
            self.term(1);
            return Ok(());
        }
        let number = |digits: &str| digits.parse::<u32>().unwrap_or(u32::MAX);
        let (least, most) = (number(min), number(max));
        if !max.is_empty() && least > most {
            return Err(format!("{{{min},{max}}} has its numbers out of order"));
        }
        let (text, most) = match (comma, max.is_empty()) {
            (false, _) => (format!("{{{least}}}"), least),
            (true, true) => (format!("{{{least},}}"), least.saturating_add(1)),
            (true, false) => (format!("{{{least},{most}}}"), most),
        };
        self.repeat(u64::from(most), &text)
    }

    fn escape(&mut self) -> Syntax<()> {
        match self.read_escape()? {
            Escape::Char(c) => {
                push_char(&mut self.out, c);
                self.term(1);
            }
            Escape::Set(set) => {
                self.out.push_str(&set);
                self.term(1);
            }
            Escape::Assertion(text) => self.assertion(text),
            Escape::BackReference => {
                self.unsupported
                    .get_or_insert(PatternProblem::BackReference);
                self.term(0);
            }
        }
        Ok(())
    }
}

/// Writes one character so that it has no special meaning.
pub(super) fn push_char(out: &mut String, c: char) {
    if c.is_ascii_alphanumeric() || !c.is_ascii() {
        out.push(c);
    } else {
        // Writing to a String cannot fail.
        let _ = write!(out, "\\x{{{:x}}}", u32::from(c));
    }
}
