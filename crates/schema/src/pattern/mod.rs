//! Patterns: ECMA-262 regular expressions, translated to the linear-time `regex` crate and compiled within limits.

mod class;
mod escape;
mod translate;

use leasehold_core::limits::{
    PATTERN_MAX_BYTES, PATTERN_MAX_NESTING, PATTERN_MAX_POSITIONS, PATTERN_MAX_PROGRAM_BYTES,
};
use regex::{Regex, RegexBuilder};
use thiserror::Error;

pub(crate) use translate::is_valid;

/// The sizes that a program is tried with. The first that suffices is what the pattern is charged: `regex` does not tell the exact size.
const PROGRAM_SIZES: [usize; 4] = [4 << 10, 16 << 10, 64 << 10, PATTERN_MAX_PROGRAM_BYTES];
/// Levels of `regex`'s own syntax tree for each group of a pattern: the group, its alternatives, their terms, a repetition.
const LEVELS_PER_GROUP: u32 = 4;
/// Positions of a pattern that a step covers. Reading a byte costs the more, the more positions can be active.
const POSITIONS_PER_STEP: u64 = 8;

/// Why a pattern is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PatternProblem {
    /// Not a regular expression of ECMA-262.
    #[error("{0}")]
    Syntax(String),
    /// Look-ahead or look-behind.
    #[error(
        "look-around such as (?=…) or (?<!…) is not supported, because it cannot be matched in linear time"
    )]
    LookAround,
    /// A back-reference.
    #[error(
        "back-references such as \\1 or \\k<name> are not supported, because they cannot be matched in linear time"
    )]
    BackReference,
    /// More bytes than allowed.
    #[error("a pattern must have at most {PATTERN_MAX_BYTES} bytes, this one has {0}")]
    TooLong(usize),
    /// Groups nest too deep.
    #[error("groups must not nest deeper than {PATTERN_MAX_NESTING} levels")]
    TooDeep,
    /// Repetitions make it too long.
    #[error(
        "with its repetitions written out a pattern must have at most {PATTERN_MAX_POSITIONS} characters and classes; use `*`, or `maxLength` instead of counted repetitions"
    )]
    TooManyPositions,
    /// The compiled program is too large.
    #[error(
        "the compiled pattern must have at most {PATTERN_MAX_PROGRAM_BYTES} bytes; use fewer repetitions and Unicode classes"
    )]
    ProgramTooLarge,
}

/// A compiled pattern.
#[derive(Debug)]
pub(crate) struct Pattern {
    regex: Regex,
    /// The pattern as it was written.
    pub(crate) source: Box<str>,
    /// What its program is charged.
    pub(crate) bytes: usize,
    steps_per_byte: u64,
}

impl Pattern {
    pub(crate) fn compile(source: &str) -> Result<Self, PatternProblem> {
        if source.len() > PATTERN_MAX_BYTES {
            return Err(PatternProblem::TooLong(source.len()));
        }
        let translated = translate::translate(source)?;
        if translated.depth > PATTERN_MAX_NESTING {
            return Err(PatternProblem::TooDeep);
        }
        if translated.positions > PATTERN_MAX_POSITIONS {
            return Err(PatternProblem::TooManyPositions);
        }
        for bytes in PROGRAM_SIZES {
            let built = RegexBuilder::new(&translated.source)
                .size_limit(bytes)
                .dfa_size_limit(PATTERN_MAX_PROGRAM_BYTES)
                .nest_limit((PATTERN_MAX_NESTING as u32 + 1) * LEVELS_PER_GROUP)
                .build();
            match built {
                Ok(regex) => {
                    return Ok(Self {
                        regex,
                        source: source.into(),
                        bytes,
                        steps_per_byte: 1 + translated.positions / POSITIONS_PER_STEP,
                    });
                }
                Err(regex::Error::CompiledTooBig(_)) => {}
                Err(error) => return Err(PatternProblem::Syntax(last_line(&error.to_string()))),
            }
        }
        Err(PatternProblem::ProgramTooLarge)
    }

    /// The steps that matching a text of so many bytes may take.
    pub(crate) fn steps(&self, bytes: usize) -> u64 {
        (bytes as u64 + 1).saturating_mul(self.steps_per_byte)
    }

    /// Whether the text matches somewhere. Count [`Pattern::steps`] before.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

/// The reason in an error of `regex`, which draws the pattern before it.
fn last_line(error: &str) -> String {
    let line = error.lines().last().unwrap_or_default().trim();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        Pattern::compile(pattern).unwrap().is_match(text)
    }

    fn problem(pattern: &str) -> PatternProblem {
        Pattern::compile(pattern).unwrap_err()
    }

    #[test]
    fn classes_have_the_meaning_of_ecma_262() {
        let cases = [
            (r"^\d$", "7", true),
            (r"^\d$", "߀", false),
            (r"^\D$", "߀", true),
            (r"^\w$", "_", true),
            (r"^\w$", "é", false),
            (r"^\W$", "é", true),
            (r"^\s$", "\u{feff}", true),
            (r"^\s$", "\u{2029}", true),
            (r"^\s$", "\u{1}", false),
            (r"^\S$", "\u{3000}", false),
            (r"^[\W\d]$", "5", true),
            (r"^[^\s\d]$", "\u{a0}", false),
            (r"^.$", "\r", false),
            (r"^.$", "\u{2028}", false),
            (r"^.$", "🐲", true),
            (r"^\p{Letter}$", "é", true),
            (r"^\p{digit}+$", "৪২", true),
            (r"^\P{L}$", "é", false),
            (r"^\p{Script=Greek}$", "α", true),
            (r"\ba\b", "é a é", true),
            (r"\ba\b", "éaé", true),
            (r"\Ba", "ba", true),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text:?}");
        }
    }

    #[test]
    fn escapes_and_anchors_have_the_meaning_of_ecma_262() {
        let cases = [
            (r"^\/\-\_\@$", "/-_@", true),
            (r"^\u0061\x62\u{1F432}$", "ab🐲", true),
            (r"^\uD83D\uDC32*$", "🐲🐲", true),
            (r"^\cJ\0\t\v\f\r\n$", "\n\0\t\u{b}\u{c}\r\n", true),
            (r"^abc$", "abc\n", false),
            (r"^abc$", "x\nabc", false),
            (r"^[a-c\]\-&&~~[]+$", "abc]-&~[", true),
            (r"^[\b]$", "\u{8}", true),
            (r"^[^]$", "\n", true),
            (r"[]", "a", false),
            (r"^[\w-.]+$", "a-.", true),
            (r"^[--b]+$", "-1b", true),
            (r"^a{2}$", "aa", true),
            (r"^a{,2}$", "a{,2}", true),
            (r"^{a}]$", "{a}]", true),
            (r"^(?<year>\d{4})-(?:x|y)?$", "2024-x", true),
            (r"^a+?b*?c??$", "ab", true),
            (r"^#\s $", "#\t ", true),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text:?}");
        }
    }

    #[test]
    fn look_around_and_back_references_are_refused_by_name() {
        for pattern in ["(?=a)", "(?!a)b", "(?<=a)b", "(?<!a)b", "a(b(?=c))"] {
            assert_eq!(problem(pattern), PatternProblem::LookAround, "{pattern}");
        }
        for pattern in [r"(a)\1", r"(?<x>a)\k<x>", r"(a)\12"] {
            assert_eq!(problem(pattern), PatternProblem::BackReference, "{pattern}");
        }
        assert!(problem("(?=a)").to_string().contains("look-around"));
        assert!(problem(r"(a)\1").to_string().contains("back-references"));
    }

    #[test]
    fn invalid_patterns_are_refused() {
        let cases = [
            "(",
            ")",
            "[",
            "[b-a]",
            "*",
            "a**",
            "a{2}{3}",
            "a{3,2}",
            "^*",
            "\\",
            r"\a",
            r"\Z",
            r"\xg1",
            r"\u12",
            r"\u{110000}",
            r"\ud800",
            r"\c1",
            r"\p",
            r"\p{}",
            r"\p{NoSuch}",
            r"\01",
            r"[\1]",
            r"[\B]",
            "(?",
            "(?i)a",
            "(?<1>a)",
            "(?<a",
            "a|*",
            r"\k",
        ];
        for pattern in cases {
            let found = problem(pattern);
            assert!(
                matches!(found, PatternProblem::Syntax(_)),
                "{pattern}: {found}"
            );
        }
    }

    #[test]
    fn size_and_repetitions_are_bounded() {
        let long = "a".repeat(PATTERN_MAX_BYTES + 1);
        assert_eq!(
            problem(&long),
            PatternProblem::TooLong(PATTERN_MAX_BYTES + 1)
        );
        let nested = |n: usize| format!("{}a{}", "(".repeat(n), ")".repeat(n));
        assert!(Pattern::compile(&nested(PATTERN_MAX_NESTING)).is_ok());
        assert_eq!(
            problem(&nested(PATTERN_MAX_NESTING + 1)),
            PatternProblem::TooDeep
        );
        for pattern in [
            "a{1001}",
            "(a{40}){40}",
            "((a{0,20}|b){30}){2}",
            "(x{999999999999}){9}",
            // Empty branches and assertions took no position, so that nested repetitions of them cost nothing in the account.
            r"((|||||||||){40}){3}",
            r"((\b\b\b\b\b){40}){6}",
        ] {
            assert_eq!(
                problem(pattern),
                PatternProblem::TooManyPositions,
                "{pattern}"
            );
        }
        assert_eq!(problem(r"^\p{L}{60}$"), PatternProblem::ProgramTooLarge);
        assert!(Pattern::compile(r"^\p{L}[\p{L} '-]{0,3}$").is_ok());
        assert!(Pattern::compile("^[a-z0-9]{1,255}$").is_ok());
    }

    #[test]
    fn steps_grow_with_the_text_and_the_pattern() {
        let small = Pattern::compile("^a*$").unwrap();
        let large = Pattern::compile("^(a?){500}$").unwrap();
        assert_eq!(small.steps(99), 100);
        assert!(large.steps(99) > 6_000);
    }
}
