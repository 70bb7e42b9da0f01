//! `leasehold config example`: the file is valid, and uncommented it equals the defaults.

use crate::program::CommandEnv;

/// Uncomments every setting that has a default.
fn uncommented(text: &str) -> String {
    let mut lines = Vec::new();
    let mut is_example_only = false;
    for line in text.lines() {
        let setting = line
            .strip_prefix('#')
            .filter(|rest| rest.starts_with(|first: char| first.is_ascii_lowercase()));
        match setting {
            Some(setting) if !is_example_only => lines.push(setting),
            _ => lines.push(line),
        }
        is_example_only = line == "# Not set by default; for example:";
    }
    lines.join("\n")
}

#[test]
fn example_file_is_valid_and_uncommented_equals_the_defaults() {
    let env = CommandEnv::new();
    let printed = env.run(&["config", "example"]).success().stdout;
    env.write("as_it_is.toml", &printed);
    env.write("every_line.toml", uncommented(&printed));
    let output = env.run(&["config", "check", "as_it_is.toml"]).success();
    assert_eq!(output.stdout, "as_it_is.toml: 0 settings, valid\n");
    let settings = |arguments: &[&str]| {
        let all = env.run(&[arguments, &["-o", "json"]].concat()).success();
        let all: serde_json::Value = serde_json::from_str(&all.stdout).unwrap();
        all
    };
    let defaults = settings(&["config", "print"]);
    let read = settings(&["config", "print", "--config", "every_line.toml"]);
    assert_eq!(read["settings"], defaults["settings"]);
    // The file has every setting with a default.
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
