//! The alerts: checked and tested by promtool; each has a runbook, whose commands and series exist.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::documents::documents;
use crate::series::{assert_queries, unknown};
use crate::{path, promtool, text, with};

pub(crate) const RULES: &str = "packaging/prometheus/leasehold.rules.yml";
const TESTS: &str = "packaging/prometheus/leasehold.rules.test.yml";
const RUNBOOKS: &str = "docs/operations/runbooks";

/// The rules of a kind: `alert` or `record`.
pub(crate) fn rules(kind: &str) -> Vec<Value> {
    let file = documents(&text(RULES)).remove(0);
    let groups = file["groups"].as_array().unwrap().iter();
    let rules = groups.flat_map(|group| group["rules"].as_array().unwrap().clone());
    rules.filter(|rule| rule[kind].is_string()).collect()
}

fn names(kind: &str) -> BTreeSet<String> {
    let rules = rules(kind).into_iter();
    rules
        .map(|rule| rule[kind].as_str().unwrap().to_owned())
        .collect()
}

/// Writes changed rules beside their tests.
fn tried(rules: &str) -> crate::Outcome {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("leasehold.rules.yml"), rules).unwrap();
    let tests = folder.path().join("leasehold.rules.test.yml");
    fs::write(&tests, text(TESTS)).unwrap();
    promtool(&["test", "rules", tests.to_str().unwrap()])
}

#[test]
fn prometheus_accepts_the_rules() {
    promtool(&["check", "rules", path(RULES).to_str().unwrap()]).must_succeed();
}

#[test]
fn alert_tests_pass() {
    tried(&text(RULES)).must_succeed();
}

#[test]
fn changed_threshold_fails_the_tests() {
    for (part, other) in [
        ("> 3600", "> 3601"),
        ("> 0.05", "> 0.5"),
        ("for: 20m", "for: 1m"),
    ] {
        tried(&with(&text(RULES), part, other)).must_fail_with("FAILED");
    }
}

#[test]
fn every_alert_is_tested_firing_and_silent() {
    let file = documents(&text(TESTS)).remove(0);
    let mut fired = BTreeSet::new();
    for test in file["tests"].as_array().unwrap() {
        let steps = test["alert_rule_test"].as_array().unwrap();
        let fires = |step: &Value| !step["exp_alerts"].as_array().unwrap().is_empty();
        let alert = steps[0]["alertname"].as_str().unwrap();
        assert!(steps.iter().all(|step| step["alertname"] == alert));
        assert!(!fires(&steps[0]), "{alert} should be silent at first");
        assert!(!fires(steps.last().unwrap()), "{alert} should end");
        if steps.iter().any(fires) {
            fired.insert(alert.to_owned());
        }
    }
    assert_eq!(fired, names("alert"));
}

#[test]
fn prometheus_accepts_the_scrape_configs() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("leasehold.key"), "lh_admin_x").unwrap();
    fs::write(folder.path().join("leasehold.rules.yml"), text(RULES)).unwrap();
    let file = folder.path().join("prometheus.yml");
    fs::write(&file, text("packaging/prometheus/prometheus.yml")).unwrap();
    promtool(&["check", "config", file.to_str().unwrap()]).must_succeed();
    let compose = path("packaging/compose/observe/prometheus.yml");
    let arguments = [
        "check",
        "config",
        "--syntax-only",
        compose.to_str().unwrap(),
    ];
    promtool(&arguments).must_succeed();
    let broken = with(
        &text("packaging/prometheus/prometheus.yml"),
        "targets",
        "target",
    );
    fs::write(&file, broken).unwrap();
    promtool(&["check", "config", file.to_str().unwrap()]).must_fail_with("target");
}

#[test]
fn rules_use_known_series() {
    for rule in [rules("alert"), rules("record")].concat() {
        let unknown = unknown(rule["expr"].as_str().unwrap());
        assert!(unknown.is_empty(), "{rule}: {unknown:?}");
    }
}

#[test]
fn alerts_and_runbooks_match() {
    let overview = text("docs/operations/alerts.md");
    let mut pages = BTreeSet::new();
    for rule in rules("alert") {
        let name = rule["alert"].as_str().unwrap();
        let annotations = &rule["annotations"];
        for needed in ["summary", "description"] {
            assert!(annotations[needed].is_string(), "{name} has no {needed}");
        }
        let url = annotations["runbook_url"].as_str().unwrap();
        let (_, page) = url.split_once("/blob/main/").unwrap();
        assert!(page.starts_with(RUNBOOKS), "{name}: {page}");
        let page = text(page);
        let severity = rule["labels"]["severity"].as_str().unwrap();
        let begins = format!("# {name}\n\n**{}.**", capital(severity));
        assert!(page.starts_with(&begins), "{name} should begin {begins:?}");
        let file = url.rsplit('/').next().unwrap();
        let listed = format!("| [{name}](runbooks/{file}) | {severity} |");
        assert!(overview.contains(&listed), "alerts.md should have {listed}");
        pages.insert(file.to_owned());
    }
    let there = fs::read_dir(path(RUNBOOKS)).unwrap();
    let there = there.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(there.collect::<BTreeSet<_>>(), pages);
}

fn capital(word: &str) -> String {
    word[..1].to_uppercase() + &word[1..]
}

#[test]
fn runbooks_have_all_sections() {
    for (name, page) in runbooks() {
        let headings: Vec<&str> = page.lines().filter(|l| l.starts_with("## ")).collect();
        let expected = [
            "## Meaning",
            "## Diagnose",
            "## Fix",
            "## Escalate",
            "## Resolved when",
        ];
        assert_eq!(headings, expected, "{name}");
    }
}

#[test]
fn runbook_queries_are_valid() {
    let mut queries = Vec::new();
    for (_, page) in runbooks() {
        queries.extend(blocks(&page, "promql"));
    }
    assert!(queries.len() > 30);
    assert_queries(&queries);
}

#[test]
fn runbook_commands_exist() {
    let reference = text("docs/reference/cli.md");
    let mut seen = 0;
    for (name, page) in runbooks() {
        let in_text = page.split('`').skip(1).step_by(2).map(str::to_owned);
        let commands = blocks(&page, "sh norun").into_iter().chain(in_text);
        for command in commands.filter(|command| command.starts_with("leasehold ")) {
            let words = command.split(' ').skip(1);
            let words: Vec<&str> = words
                .take_while(|word| word.starts_with(|c: char| c.is_ascii_lowercase()))
                .collect();
            let known = (1..=words.len()).any(|many| is_command(&reference, &words[..many]));
            assert!(known, "{name}: {command}");
            seen += 1;
        }
    }
    assert!(seen > 30);
}

/// Whether these words are a command without subcommands.
fn is_command(reference: &str, words: &[&str]) -> bool {
    let heading = format!("## leasehold {}", words.join(" "));
    reference.contains(&format!("{heading}\n")) && !reference.contains(&format!("{heading} "))
}

fn runbooks() -> Vec<(String, String)> {
    let entries = fs::read_dir(path(RUNBOOKS)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .map(|name| (name.clone(), text(&format!("{RUNBOOKS}/{name}"))))
        .collect()
}

/// The lines of the code blocks of a kind.
fn blocks(page: &str, kind: &str) -> Vec<String> {
    let fence = format!("```{kind}\n");
    let blocks = page.split(&fence).skip(1);
    let code = blocks.map(|block| block.split("```").next().unwrap());
    code.flat_map(str::lines).map(str::to_owned).collect()
}
