//! Checks links between files and that the book lists every page. Pure: works on paths and texts.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::links::{Link, anchors, links};
use crate::tidy::{Finding, line_of};

/// The directory of the book's pages.
pub(crate) const BOOK: &str = "docs/";
const SUMMARY: &str = "docs/SUMMARY.md";

/// Findings for all pages. `texts` has every file by path; binary files have no text.
pub(crate) fn check(texts: &BTreeMap<String, Option<String>>) -> Vec<Finding> {
    let pages = || {
        texts.iter().filter_map(|(path, text)| {
            let text = text.as_deref()?;
            path.ends_with(".md").then_some((path.as_str(), text))
        })
    };
    let known = Known {
        files: texts.keys().map(String::as_str).collect(),
        anchors: pages().map(|(path, text)| (path, anchors(text))).collect(),
    };
    let mut findings = Vec::new();
    for (path, text) in pages() {
        for link in links(text) {
            if let Some(wrong) = known.wrong(path, &link) {
                findings.push(Finding::new(path, line_of(text, link.at.start), wrong));
            }
        }
    }
    findings.extend(left_out(texts));
    findings
}

struct Known<'a> {
    files: HashSet<&'a str>,
    anchors: HashMap<&'a str, HashSet<String>>,
}

impl Known<'_> {
    fn wrong(&self, page: &str, link: &Link) -> Option<String> {
        let target = &link.target;
        if is_elsewhere(target) {
            return None;
        }
        let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
        let Some(file) = resolve(page, path) else {
            return Some(format!("`{target}` points outside the repository"));
        };
        if !self.is_there(&file) {
            return Some(format!(
                "`{target}` is a broken link: {file} does not exist; fix the link or add the file"
            ));
        }
        match self.anchors.get(file.as_str()) {
            Some(anchors) if !anchor.is_empty() && !anchors.contains(anchor) => Some(format!(
                "`{target}` is a broken link: {file} has no heading with the id `{anchor}`"
            )),
            _ => None,
        }
    }

    fn is_there(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        path.is_empty()
            || self.files.contains(path)
            || self.files.iter().any(|file| file.starts_with(&folder))
    }
}

/// A README with this line lists the pages of its directory. `cargo xtask book` replaces it by the list and adds a chapter per page.
pub(crate) const FOLDER_LIST: &str = "<!-- the pages of this folder -->";

/// Whether the README of the page's directory lists the page, and the summary lists the README.
fn is_in_folder_list(
    path: &str,
    texts: &BTreeMap<String, Option<String>>,
    listed: &HashSet<String>,
) -> bool {
    let Some((folder, _)) = path.rsplit_once('/') else {
        return false;
    };
    let readme = format!("{folder}/README.md");
    let text = texts.get(&readme).and_then(Option::as_deref);
    listed.contains(&readme) && text.is_some_and(|text| text.contains(FOLDER_LIST))
}

/// Pages that neither the summary nor a README lists.
fn left_out(texts: &BTreeMap<String, Option<String>>) -> Vec<Finding> {
    let Some(Some(summary)) = texts.get(SUMMARY) else {
        return Vec::new();
    };
    let listed: HashSet<String> = links(summary)
        .iter()
        .filter_map(|link| resolve(SUMMARY, &link.target))
        .collect();
    texts
        .keys()
        .filter(|path| path.starts_with(BOOK) && path.ends_with(".md"))
        .filter(|path| *path != SUMMARY && !listed.contains(*path))
        .filter(|path| !is_in_folder_list(path, texts, &listed))
        .map(|path| Finding::new(path, 1, format!("is not in {SUMMARY}; add a line for it")))
        .collect()
}

/// Whether a target is external.
pub(crate) fn is_elsewhere(target: &str) -> bool {
    ["https://", "http://", "mailto:"]
        .iter()
        .any(|scheme| target.starts_with(scheme))
}

/// Resolves a relative link; `None` if it points outside the repository.
pub(crate) fn resolve(page: &str, link: &str) -> Option<String> {
    if link.is_empty() {
        return Some(page.to_owned());
    }
    if link.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let texts = files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), Some((*text).to_owned())))
            .collect();
        let findings = check(&texts);
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn links_to_files_directories_and_headings_are_valid() {
        let page =
            "# One\n[a](b.md#two) [b](#one) [c](../examples/) [d](../x.rs) [e](https://e.example)";
        let files = [
            ("docs/a.md", page),
            ("docs/b.md", "# Two"),
            ("examples/order/graph.json", "{}"),
            ("x.rs", ""),
        ];
        assert_eq!(found(&files), Vec::<String>::new());
    }

    #[test]
    fn broken_link_is_found_with_its_line() {
        let findings = found(&[("docs/a.md", "# One\n\n[a](c.md)\n")]);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].starts_with("docs/a.md:3: `c.md` is a broken link"));
    }

    #[test]
    fn missing_heading_is_found() {
        for link in ["[a](#two)", "[a](b.md#two)"] {
            let findings = found(&[("a.md", link), ("b.md", "# One")]);
            assert_eq!(findings.len(), 1, "{findings:?}");
            assert!(findings[0].contains("no heading with the id `two`"));
        }
    }

    #[test]
    fn link_out_of_the_repository_is_found() {
        for link in ["../a", "/etc/passwd", "docs/../../a"] {
            let findings = found(&[("README.md", &format!("[a]({link})"))]);
            assert_eq!(findings.len(), 1, "{findings:?}");
            assert!(findings[0].contains("points outside the repository"));
        }
    }

    #[test]
    fn unlisted_page_is_found() {
        let files = [
            ("docs/SUMMARY.md", "- [a](a.md)"),
            ("docs/a.md", "# A"),
            ("docs/b.md", "# B"),
        ];
        assert_eq!(
            found(&files),
            ["docs/b.md:1: is not in docs/SUMMARY.md; add a line for it"]
        );
    }

    #[test]
    fn page_in_a_directory_list_needs_no_summary_line() {
        let list = format!("# A\n\n{FOLDER_LIST}\n");
        let files = [
            ("docs/SUMMARY.md", "- [a](a/README.md)"),
            ("docs/a/README.md", &list),
            ("docs/a/b.md", "# B"),
            ("docs/c/README.md", &list),
            ("docs/c/d.md", "# D"),
        ];
        let findings = found(&files);
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(findings[0].starts_with("docs/c/README.md:1: "));
        assert!(findings[1].starts_with("docs/c/d.md:1: "));
    }
}
