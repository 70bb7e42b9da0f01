//! Forbids file and directory names that say nothing.

use super::finding::Finding;

const EMPTY: [&str; 5] = ["util", "utils", "common", "helper", "helpers"];

pub(super) fn say_something(path: &str, _text: &str) -> Vec<Finding> {
    path.split('/')
        .map(|part| part.split_once('.').map_or(part, |(stem, _)| stem))
        .filter(|stem| EMPTY.contains(stem))
        .map(|stem| {
            Finding::new(
                path,
                1,
                format!("the name `{stem}` does not describe its contents"),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_names_are_found_for_files_and_folders() {
        for name in EMPTY {
            for path in [
                format!("crates/a/src/{name}.rs"),
                format!("crates/a/tests/{name}/mod.rs"),
            ] {
                assert_eq!(say_something(&path, "").len(), 1, "{path}");
            }
        }
        assert_eq!(say_something("crates/a/src/common_ground.rs", ""), []);
    }
}
