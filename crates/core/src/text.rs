//! Validation of short texts that users choose: names, keys, owners. Every such text passes here before it reaches a store.

use thiserror::Error;

/// Why a text is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TextProblem {
    /// Empty, or only white space.
    #[error("must not be empty")]
    Empty,
    /// More characters than allowed.
    #[error("must have at most {max} characters, has {actual}")]
    TooLong {
        /// The limit.
        max: usize,
        /// The actual size.
        actual: usize,
    },
    /// A control character, including NUL: databases and terminals treat them differently.
    #[error("must not contain control characters (found U+{0:04X})")]
    Control(u32),
    /// The name of a queue of Leasehold itself, of another workspace, or of the installation. One text for all, so that it does not tell which queues exist.
    #[error("is reserved; choose another name, or ask an administrator to share the queue")]
    Reserved,
}

/// Accepts a text of one to `max` characters without control characters.
pub fn check(text: &str, max: usize) -> Result<(), TextProblem> {
    if text.trim().is_empty() {
        return Err(TextProblem::Empty);
    }
    let actual = text.chars().count();
    if actual > max {
        return Err(TextProblem::TooLong { max, actual });
    }
    match text.chars().find(|c| c.is_control()) {
        Some(c) => Err(TextProblem::Control(c as u32)),
        None => Ok(()),
    }
}

/// Truncates a message to `max` characters and drops NUL, which databases reject in text.
pub fn clip(text: &str, max: usize) -> String {
    text.chars().filter(|c| *c != '\0').take(max).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_at_the_length_limit_is_accepted() {
        assert_eq!(check("Käse & Söhne", 12), Ok(()));
    }

    #[test]
    fn empty_long_and_control_texts_are_rejected() {
        assert_eq!(check(" \t", 10), Err(TextProblem::Empty));
        assert_eq!(
            check("abc", 2),
            Err(TextProblem::TooLong { max: 2, actual: 3 })
        );
        assert_eq!(check("a\0b", 10), Err(TextProblem::Control(0)));
        assert_eq!(check("a\nb", 10), Err(TextProblem::Control(10)));
    }

    #[test]
    fn clipping_counts_characters_and_drops_nul() {
        assert_eq!(clip("ä\0öü", 2), "äö");
    }
}
