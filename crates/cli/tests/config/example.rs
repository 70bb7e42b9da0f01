//! `leasehold config example`: what it says when its lines are taken at their word.

use crate::program::Folder;

/// Takes the mark away from each setting that has a default.
fn uncommented(text: &str) -> String {
    let mut lines = Vec::new();
    let mut only_an_example = false;
    for line in text.lines() {
        let setting = line
            .strip_prefix('#')
            .filter(|rest| rest.starts_with(|first: char| first.is_ascii_lowercase()));
        match setting {
            Some(setting) if !only_an_example => lines.push(setting),
            _ => lines.push(line),
        }
        only_an_example = line == "# Not set by default; for example:";
    }
    lines.join("\n")
}

#[test]
fn as_it_is_and_with_every_line_taken_at_its_word_it_changes_nothing() {
    let folder = Folder::new();
    let printed = folder.run(&["config", "example"]).well().stdout;
    folder.write("as_it_is.toml", &printed);
    folder.write("every_line.toml", uncommented(&printed));
    let ended = folder.run(&["config", "check", "as_it_is.toml"]).well();
    assert_eq!(ended.stdout, "as_it_is.toml: 0 settings, all well\n");
    let settings = |arguments: &[&str]| {
        let all = folder.run(&[arguments, &["-o", "json"]].concat()).well();
        let all: serde_json::Value = serde_json::from_str(&all.stdout).unwrap();
        all
    };
    let defaults = settings(&["config", "print"]);
    let read = settings(&["config", "print", "--config", "every_line.toml"]);
    assert_eq!(read["settings"], defaults["settings"]);
    // Every setting is in the file, but for those that have no default.
    let sections = defaults["settings"].as_object().unwrap();
    let given = read["from"].as_object().unwrap().len();
    let there: usize = sections
        .values()
        .map(|section| match section.as_object() {
            Some(keys) => keys.values().filter(|value| !value.is_null()).count(),
            None => 1,
        })
        .sum();
    assert_eq!(given, there);
}
