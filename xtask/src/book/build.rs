//! Builds the book of docs/ with mdBook.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use mdbook_driver::MDBook;
use mdbook_driver::book::{BookItem, Chapter};

use super::pages::{BOOK, FOLDER_LIST};
use super::rewrite::rewrite_links;

/// Builds the book of the repository at `root` into the directory `folder`.
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
            chapter.content = rewrite_links(&page, &chapter.content);
        }
    });
    book.build().context("mdBook")
}

/// Lists the pages of a README's directory in it and adds them as chapters.
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
