//! Checks that the links of the built book lead to existing pages and anchors. Knows the HTML of mdBook, no Markdown.

use std::collections::{BTreeMap, HashSet};
#[cfg(feature = "book")]
use std::{fs, path::Path};

#[cfg(feature = "book")]
use anyhow::{Context, Result};

use super::pages::{is_elsewhere, resolve};

/// The broken links, one per line.
#[cfg(feature = "book")]
pub(super) fn check(folder: &Path) -> Result<Vec<String>> {
    let mut files = BTreeMap::new();
    collect(folder, "", &mut files)?;
    Ok(broken(&files))
}

/// The files of the book; only pages have a text.
#[cfg(feature = "book")]
fn collect(folder: &Path, below: &str, files: &mut BTreeMap<String, String>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let path = format!("{below}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{path}/"), files)?;
        } else if path.ends_with(".html") {
            files.insert(path, fs::read_to_string(entry.path())?);
        } else {
            files.insert(path, String::new());
        }
    }
    Ok(())
}

fn broken(files: &BTreeMap<String, String>) -> Vec<String> {
    let ids: BTreeMap<&str, HashSet<&str>> = files
        .iter()
        .map(|(path, text)| (path.as_str(), values(text, " id=\"").collect()))
        .collect();
    let mut broken = Vec::new();
    for (page, text) in files {
        for target in values(text, " href=\"") {
            if is_elsewhere(target) {
                continue;
            }
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let there = resolve(page, path).and_then(|file| ids.get(file.as_str()));
            if !there.is_some_and(|ids| anchor.is_empty() || ids.contains(anchor)) {
                broken.push(format!("{page}: `{target}` is a broken link in the book"));
            }
        }
    }
    broken
}

/// The values of an attribute.
fn values<'a>(html: &'a str, attribute: &'a str) -> impl Iterator<Item = &'a str> {
    html.split(attribute)
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_page_or_anchor_is_found() {
        let page = "<a href=\"b.html#two\">x</a> <a href=\"c.html\">x</a> <a href=\"b.html#one\">x</a> <a href=\"https://e.example\">x</a>";
        let files = [("a.html", page), ("b.html", "<h1 id=\"one\">x</h1>")]
            .map(|(path, text)| (path.to_owned(), text.to_owned()));
        assert_eq!(
            broken(&files.into()),
            [
                "a.html: `b.html#two` is a broken link in the book",
                "a.html: `c.html` is a broken link in the book"
            ]
        );
    }
}
