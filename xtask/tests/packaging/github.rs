//! The files that GitHub reads: workflows, issue forms, dependency updates. The checker includes their schemas.

use leasehold_testkit::CHECK_JSONSCHEMA;
use std::path::Path;

use crate::{Outcome, path, run, text, with};

const WORKFLOWS: [&str; 3] = [
    ".github/workflows/ci.yml",
    ".github/workflows/release.yml",
    ".github/workflows/dependencies.yml",
];

fn check(schema: &str, file: &Path) -> Outcome {
    let mut command = CHECK_JSONSCHEMA.command().unwrap();
    run(command.args(["--builtin-schema", schema]).arg(file))
}

#[test]
fn files_match_their_schemas() {
    for workflow in WORKFLOWS {
        check("vendor.github-workflows", &path(workflow)).must_succeed();
    }
    for form in ["bug", "feature"] {
        let file = path(&format!(".github/ISSUE_TEMPLATE/{form}.yml"));
        check("vendor.github-issue-forms", &file).must_succeed();
    }
    check("vendor.dependabot", &path(".github/dependabot.yml")).must_succeed();
}

#[test]
fn invalid_workflow_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ci.yml");
    let broken = with(&text(WORKFLOWS[0]), "runs-on:", "run-on:");
    std::fs::write(&file, broken).unwrap();
    check("vendor.github-workflows", &file).must_fail_with("run-on");
}

#[test]
fn workflows_use_the_developer_commands() {
    assert!(text(WORKFLOWS[0]).contains("run: .ci/run\n"));
    assert!(text(WORKFLOWS[1]).contains("run: cargo xtask package\n"));
    assert!(text(WORKFLOWS[1]).contains("file: packaging/docker/Dockerfile\n"));
    assert!(text(WORKFLOWS[2]).contains("run: cargo deny --locked check\n"));
}
