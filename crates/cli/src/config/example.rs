//! The documented file with every setting: the page of settings, as comments that can be taken away.
//!
//! A line that begins with `# ` is prose; one that begins with `#` and a name is a setting at its default.

use super::effective::written;
use crate::settings::{Settings, known};
use std::fmt::Write;

const PAGE: &str = include_str!("../../../../docs/operations/settings.md");
const WIDTH: usize = 100;

const HEAD: &str = "\
# Every setting of Leasehold, at its default. Take the # away from a line to change it.
#
# leasehold serve --config leasehold.toml
# leasehold config check leasehold.toml      names what is wrong, and where
# leasehold config print --config leasehold.toml      shows what is in effect
#
# The same by variables: LEASEHOLD__STORE__URL, LEASEHOLD__DISPATCH__BATCH_SIZE=200. Lengths of time are written as
# \"5s\", \"250ms\", \"2m\". This text is made by `leasehold config example`.
";

/// The file.
pub(super) fn text() -> String {
    let mut text = HEAD.to_owned();
    let mut section = "";
    let mut intro: Vec<String> = Vec::new();
    // What is before the first heading is about the page.
    let (_, page) = PAGE.split_once("\n## ").unwrap_or(("", PAGE));
    for line in page.lines() {
        match row(line) {
            Some((key, why)) => {
                let own = known::section(key);
                if own != section {
                    let _ = write!(text, "\n[{own}]\n");
                    section = own;
                }
                if !intro.is_empty() {
                    comment(&mut text, &intro.join(" "));
                    intro.clear();
                }
                setting(&mut text, key, &why);
            }
            // The heading of the first is cut in half; they all say what their section's name says.
            None if line.starts_with("## ") || line.starts_with('|') || line.is_empty() => {}
            None if line == "Store" => {}
            None => intro.push(plain(line)),
        }
    }
    text
}

/// The setting of a row of a table, and what it is for.
fn row(line: &str) -> Option<(&str, String)> {
    let cells: Vec<&str> = line.strip_prefix("| `")?.split(" | ").collect();
    let key = cells.first()?.strip_suffix('`')?;
    known::find(key)?;
    let why = cells.get(3..)?.join(" | ");
    Some((key, plain(why.trim_end().trim_end_matches(" |"))))
}

fn setting(text: &mut String, key: &str, why: &str) {
    text.push('\n');
    comment(text, why);
    let Some(known) = known::find(key) else {
        return;
    };
    let name = key.rsplit('.').next().unwrap_or_default();
    let defaults = serde_json::to_value(Settings::default()).unwrap_or_default();
    let place = format!("/{}", key.replace('.', "/"));
    let value = match (defaults.pointer(&place), known.example) {
        (Some(value), None) => written(value),
        (_, Some(example)) => {
            comment(text, "Not set by default; for example:");
            written(&example.into())
        }
        (None, None) => return,
    };
    // Writing to a text cannot fail.
    let _ = writeln!(text, "#{name} = {value}");
}

/// Prose, in lines that fit a screen.
fn comment(text: &mut String, prose: &str) {
    let mut line = "#".to_owned();
    for word in prose.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            text.push_str(&line);
            text.push('\n');
            line = "#".to_owned();
        }
        line.push(' ');
        line.push_str(word);
    }
    text.push_str(&line);
    text.push('\n');
}

/// The words of a link, and the page it leads to from the repository's root.
fn plain(markdown: &str) -> String {
    let mut text = String::new();
    let mut rest = markdown;
    while let Some((before, link)) = rest.split_once('[') {
        text.push_str(before);
        let parts = link.split_once("](").and_then(|(words, after)| {
            let (page, after) = after.split_once(')')?;
            Some((words, page, after))
        });
        match parts {
            Some((words, page, after)) => {
                let page = match page.strip_prefix("../") {
                    Some(page) => format!("docs/{page}"),
                    None => format!("docs/operations/{page}"),
                };
                // Writing to a text cannot fail.
                let _ = write!(text, "{words} ({page})");
                rest = after;
            }
            None => {
                text.push('[');
                rest = link;
            }
        }
    }
    text.push_str(rest);
    text
}
