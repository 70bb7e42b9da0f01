//! Rewrites a page's links for the book: a link that leaves docs/ becomes a link to the repository. Pure.

use super::links::links;
use super::pages::{BOOK, is_elsewhere, resolve};

/// The address of files that are not pages of the book.
const REPOSITORY: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/");

/// The page with links that also lead somewhere in the book.
pub(super) fn rewrite_links(page: &str, text: &str) -> String {
    let mut rewritten = String::with_capacity(text.len());
    let mut from = 0;
    for link in links(text) {
        if let Some(target) = book_target(page, &link.target) {
            rewritten.push_str(&text[from..link.at.start]);
            rewritten.push_str(&target);
            from = link.at.end;
        }
    }
    rewritten.push_str(&text[from..]);
    rewritten
}

/// What a link becomes, if it cannot stay as it is.
fn book_target(page: &str, target: &str) -> Option<String> {
    if is_elsewhere(target) {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let file = resolve(page, path)?;
    let hash = if anchor.is_empty() { "" } else { "#" };
    // A folder has no page, and the book's own schema is a file beside its pages.
    let is_file = file
        .rsplit('/')
        .next()
        .is_some_and(|name| name.contains('.'));
    if !file.starts_with(BOOK) || !is_file {
        return Some(format!("{REPOSITORY}{file}{hash}{anchor}"));
    }
    // mdBook calls the page of a folder's README its index.
    let index = path.strip_suffix("README.md")?;
    Some(format!("{index}index.md{hash}{anchor}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_withbook_target_stay_and_others_lead_to_the_repository() {
        let text = "[a](b.md#c) [d](../examples/worker.py), [e](adr/) [f](#g) [h](https://e.example) [i](errors/README.md#j)";
        let led = rewrite_links("docs/x.md", text);
        assert_eq!(
            led,
            format!(
                "[a](b.md#c) [d]({REPOSITORY}examples/worker.py), [e]({REPOSITORY}docs/adr) [f](#g) [h](https://e.example) [i](errors/index.md#j)"
            )
        );
    }
}
