//! Escapes of ECMA-262 patterns: `\d`, `\u0041`, `\p{L}` and the others, with the meaning they have there.

use super::translate::{Syntax, Translator};

/// `\s`: white space and line terminators, as ranges of a class.
const SPACES: &str =
    r"\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}";

/// What an escape stands for.
pub(super) enum Escape {
    Char(char),
    /// A class in the syntax of `regex`.
    Set(String),
    /// A word boundary, or none.
    Assertion(&'static str),
    BackReference,
}

impl Translator<'_> {
    /// Reads what follows a backslash outside of a class.
    pub(super) fn read_escape(&mut self) -> Syntax<Escape> {
        match self.peek() {
            Some('b') => self.assertion_escape(r"(?-u:\b)"),
            Some('B') => self.assertion_escape(r"(?-u:\B)"),
            Some('1'..='9') => {
                self.take_while(|c| c.is_ascii_digit());
                Ok(Escape::BackReference)
            }
            Some('k') => {
                if !self.take("k<") {
                    return Err(r"\k must be followed by <name>".to_owned());
                }
                self.name()?;
                Ok(Escape::BackReference)
            }
            _ => self.read_char_or_set(),
        }
    }

    fn assertion_escape(&mut self, text: &'static str) -> Syntax<Escape> {
        self.next();
        Ok(Escape::Assertion(text))
    }

    /// Reads what follows a backslash inside of a class.
    pub(super) fn read_class_escape(&mut self) -> Syntax<Escape> {
        match self.peek() {
            Some('b') => {
                self.next();
                Ok(Escape::Char('\u{8}'))
            }
            _ => self.read_char_or_set(),
        }
    }

    fn read_char_or_set(&mut self) -> Syntax<Escape> {
        let Some(c) = self.next() else {
            return Err("the pattern ends with a backslash".to_owned());
        };
        let set = |set: &str| Ok(Escape::Set(set.to_owned()));
        let char = |c: char| Ok(Escape::Char(c));
        match c {
            'd' => set("[0-9]"),
            'D' => set("[^0-9]"),
            'w' => set("[0-9A-Za-z_]"),
            'W' => set("[^0-9A-Za-z_]"),
            's' => Ok(Escape::Set(format!("[{SPACES}]"))),
            'S' => Ok(Escape::Set(format!("[^{SPACES}]"))),
            't' => char('\t'),
            'n' => char('\n'),
            'r' => char('\r'),
            'v' => char('\u{b}'),
            'f' => char('\u{c}'),
            '0' if !self.peek().is_some_and(|c| c.is_ascii_digit()) => char('\0'),
            'c' => match self.next() {
                Some(c) if c.is_ascii_alphabetic() => char(char::from(c as u8 % 32)),
                _ => Err(r"\c must be followed by a letter".to_owned()),
            },
            'x' => match self.hex(2).and_then(char::from_u32) {
                Some(c) => char(c),
                None => Err(r"\x must be followed by two hexadecimal digits".to_owned()),
            },
            'u' => self.code_point().map(Escape::Char),
            'p' | 'P' => self.property(c),
            c if c.is_ascii_alphanumeric() => Err(format!(r"\{c} is not an escape of ECMA-262")),
            c => char(c),
        }
    }

    /// Reads exactly `digits` hexadecimal digits.
    fn hex(&mut self, digits: usize) -> Option<u32> {
        let mut value = 0;
        for _ in 0..digits {
            value = value * 16 + self.peek()?.to_digit(16)?;
            self.next();
        }
        Some(value)
    }

    /// Reads what follows `\u`: four digits, two such escapes for a surrogate pair, or digits in braces.
    fn code_point(&mut self) -> Syntax<char> {
        const RULE: &str =
            r"\u must be followed by four hexadecimal digits or {…}, and name a Unicode character";
        if self.take("{") {
            let digits = self.take_while(|c| c.is_ascii_hexdigit());
            let value = u32::from_str_radix(digits, 16).ok();
            let closed = self.take("}");
            let found = value.filter(|_| closed).and_then(char::from_u32);
            return found.ok_or_else(|| RULE.to_owned());
        }
        let first = self.hex(4).ok_or_else(|| RULE.to_owned())?;
        if (0xd800..0xdc00).contains(&first) && self.take(r"\u") {
            let second = self.hex(4).filter(|low| (0xdc00..0xe000).contains(low));
            let second = second.ok_or_else(|| RULE.to_owned())?;
            let value = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            return char::from_u32(value).ok_or_else(|| RULE.to_owned());
        }
        char::from_u32(first).ok_or_else(|| RULE.to_owned())
    }

    /// Reads `{Name}` or `{Name=Value}` after `\p` or `\P`.
    fn property(&mut self, letter: char) -> Syntax<Escape> {
        let opened = self.take("{");
        let name = self.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '='));
        if !opened || name.is_empty() || !self.take("}") {
            return Err(format!(
                r"\{letter} must be followed by {{Property}} or {{Name=Value}}"
            ));
        }
        Ok(Escape::Set(format!(r"\{letter}{{{name}}}")))
    }
}
