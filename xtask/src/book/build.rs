//! Makes the book of docs/ with mdBook. Links that leave docs/ become links to the repository; its pages are not changed otherwise.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use mdbook_driver::MDBook;
use mdbook_driver::book::{BookItem, Chapter};

use super::links::links;
use super::pages::{BOOK, FOLDER_LIST, is_elsewhere, resolve};

/// Where files of the repository that are no pages of the book can be read.
const REPOSITORY: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/");

/// Builds the book of the repository at `root` into `folder`.
pub(super) fn build(root: &Path, folder: &Path) -> Result<()> {
    let mut book = MDBook::load(root).context("book.toml")?;
    book.config.build.build_dir = folder.to_owned();
    let mut added = Ok(());
    book.book.for_each_chapter_mut(|chapter| {
        if chapter.content.contains(FOLDER_LIST)
            && let Err(error) = add_folder(root, chapter)
        {
            added = Err(error);
        }
    });
    added?;
    book.book.for_each_chapter_mut(|chapter| {
        if let Some(path) = &chapter.path {
            let page = format!("{BOOK}{}", path.display());
            chapter.content = led_on(&page, &chapter.content);
        }
    });
    book.build().context("mdBook")
}

/// Lists the pages of a README's folder in it, each with its first line, and adds them as chapters below it.
fn add_folder(root: &Path, readme: &mut Chapter) -> Result<()> {
    let source = readme.source_path.clone().context("a README has a path")?;
    let below = source.parent().unwrap_or(Path::new(""));
    let folder = root.join(BOOK).join(below);
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") && name != "README.md" {
            names.push(name);
        }
    }
    names.sort();
    let mut parents = readme.parent_names.clone();
    parents.push(readme.name.clone());
    let mut list = String::new();
    for (name, number) in names.iter().zip(1..) {
        let text = fs::read_to_string(folder.join(name)).with_context(|| name.clone())?;
        let title = text.lines().find_map(|line| line.strip_prefix("# "));
        let title = title.unwrap_or(name).to_owned();
        let first = text
            .lines()
            .find(|line| !line.is_empty() && !line.starts_with('#'));
        writeln!(list, "- [{title}]({name}): {}", first.unwrap_or_default())?;
        let mut chapter = Chapter::new(&title, text, below.join(name), parents.clone());
        chapter.number = readme.number.clone().map(|mut numbers| {
            numbers.push(number);
            numbers
        });
        readme.sub_items.push(BookItem::Chapter(chapter));
    }
    readme.content = readme.content.replace(FOLDER_LIST, &list);
    Ok(())
}

/// The page with links that also lead somewhere in the book.
fn led_on(page: &str, text: &str) -> String {
    let mut led = String::with_capacity(text.len());
    let mut from = 0;
    for link in links(text) {
        if let Some(target) = in_the_book(page, &link.target) {
            led.push_str(&text[from..link.at.start]);
            led.push_str(&target);
            from = link.at.end;
        }
    }
    led.push_str(&text[from..]);
    led
}

/// What a link becomes, if it cannot stay as it is.
fn in_the_book(page: &str, target: &str) -> Option<String> {
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
    fn links_within_the_book_stay_and_others_lead_to_the_repository() {
        let text = "[a](b.md#c) [d](../examples/worker.py), [e](adr/) [f](#g) [h](https://e.example) [i](errors/README.md#j)";
        let led = led_on("docs/x.md", text);
        assert_eq!(
            led,
            format!(
                "[a](b.md#c) [d]({REPOSITORY}examples/worker.py), [e]({REPOSITORY}docs/adr) [f](#g) [h](https://e.example) [i](errors/index.md#j)"
            )
        );
    }
}
