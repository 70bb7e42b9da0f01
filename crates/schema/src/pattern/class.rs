//! Classes of ECMA-262 patterns: `[a-z]`, `[^\d.]`, with the meaning they have there.

use super::escape::Escape;
use super::translate::{Syntax, Translator, push_char};

/// One member of a class.
enum Member {
    Char(char),
    Set(String),
}

impl Translator<'_> {
    /// Reads a class after its `[` and writes it.
    pub(super) fn class(&mut self) -> Syntax<()> {
        let is_negated = self.take("^");
        if self.take("]") {
            // No character, or any.
            let any = if is_negated { "" } else { "^" };
            self.out.push_str(&format!(r"[{any}\x{{0}}-\x{{10ffff}}]"));
            return Ok(());
        }
        self.out.push_str(if is_negated { "[^" } else { "[" });
        while !self.take("]") {
            let first = self.member()?;
            let is_range = self.starts_with("-") && !self.starts_with("-]");
            if !is_range {
                self.push_member(&first);
                continue;
            }
            self.next();
            let last = self.member()?;
            match (&first, &last) {
                (Member::Char(low), Member::Char(high)) => {
                    if low > high {
                        return Err(format!("the range {low}-{high} is out of order"));
                    }
                    push_char(&mut self.out, *low);
                    self.out.push('-');
                    push_char(&mut self.out, *high);
                }
                // A hyphen beside a set is a character.
                _ => {
                    self.push_member(&first);
                    push_char(&mut self.out, '-');
                    self.push_member(&last);
                }
            }
        }
        self.out.push(']');
        Ok(())
    }

    fn member(&mut self) -> Syntax<Member> {
        match self.next() {
            None => Err("a class is not closed".to_owned()),
            Some('\\') => match self.read_class_escape()? {
                Escape::Char(c) => Ok(Member::Char(c)),
                Escape::Set(set) => Ok(Member::Set(set)),
                Escape::Assertion(_) | Escape::BackReference => {
                    Err("an assertion cannot be in a class".to_owned())
                }
            },
            Some(c) => Ok(Member::Char(c)),
        }
    }

    fn push_member(&mut self, member: &Member) {
        match member {
            Member::Char(c) => push_char(&mut self.out, *c),
            Member::Set(set) => self.out.push_str(set),
        }
    }
}
