//! Links and anchors of a Markdown page. Pure; knows no files.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// A link or an image.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// The target as written.
    pub(crate) target: String,
    /// The byte range of the target, or of the whole link.
    pub(crate) at: Range<usize>,
}

/// Every link of the text, in order.
pub(crate) fn links(text: &str) -> Vec<Link> {
    Parser::new_ext(text, dialect())
        .into_offset_iter()
        .filter_map(|(event, range)| match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => Some(Link {
                at: place(text, &range, &dest_url),
                target: dest_url.into_string(),
            }),
            _ => None,
        })
        .collect()
}

fn place(text: &str, link: &Range<usize>, target: &str) -> Range<usize> {
    let written = &text[link.clone()];
    // The target follows the link text, which may contain the same string.
    match written.rfind(target).filter(|_| !target.is_empty()) {
        Some(at) => link.start + at..link.start + at + target.len(),
        None => link.clone(),
    }
}

/// The anchors of the headings, as mdBook and GitHub generate them.
pub(crate) fn anchors(text: &str) -> HashSet<String> {
    let mut found = HashSet::new();
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(text, dialect()) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(words) | Event::Code(words) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&words);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let id = id(&heading.take().unwrap_or_default());
                let times = seen.entry(id.clone()).or_default();
                found.insert(match *times {
                    0 => id,
                    n => format!("{id}-{n}"),
                });
                *times += 1;
            }
            _ => {}
        }
    }
    found
}

fn id(heading: &str) -> String {
    let letter = |letter: char| match letter {
        _ if letter.is_whitespace() => Some('-'),
        '_' | '-' => Some(letter),
        _ => letter.is_alphanumeric().then_some(letter),
    };
    let lower = heading.trim().to_lowercase();
    lower.chars().filter_map(letter).collect()
}

fn dialect() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_FOOTNOTES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(text: &str) -> Vec<String> {
        links(text).into_iter().map(|link| link.target).collect()
    }

    #[test]
    fn links_are_found_in_tables_and_not_in_code() {
        let text =
            "| a |\n|---|\n| [b](c.md#d) |\n\n`[no](e.md)` ![i](f.png)\n\n```\n[no](g.md)\n```\n";
        assert_eq!(targets(text), ["c.md#d", "f.png"]);
    }

    #[test]
    fn range_of_a_target_is_the_target() {
        let text = "see [c.md](c.md), and\n[more](d.md) <https://e.example>\n";
        for link in links(text) {
            assert_eq!(text[link.at.clone()], link.target);
        }
        assert_eq!(links(text)[0].at.start, text.find("(c.md").unwrap() + 1);
    }

    #[test]
    fn headings_have_the_ids_of_the_book() {
        let found = anchors("# The `claim`, once\n\n## A\n\n## A\n\n### What's due?\n");
        for id in ["the-claim-once", "a", "a-1", "whats-due"] {
            assert!(found.contains(id), "{id} in {found:?}");
        }
        assert_eq!(found.len(), 4);
    }
}
