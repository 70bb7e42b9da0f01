//! The files that GitHub reads: workflows, forms for issues, dependency updates. Their schemas come with the checker.

use leasehold_testkit::CHECK_JSONSCHEMA;
use std::path::Path;

use crate::{Outcome, path, run, text, with};

const WORKFLOWS: [&str; 2] = [".github/workflows/ci.yml", ".github/workflows/release.yml"];

fn check(schema: &str, file: &Path) -> Outcome {
    let mut command = CHECK_JSONSCHEMA.command().unwrap();
    run(command.args(["--builtin-schema", schema]).arg(file))
}

#[test]
fn every_file_has_the_form_that_github_reads() {
    for workflow in WORKFLOWS {
        check("vendor.github-workflows", &path(workflow)).must_be_well();
    }
    for form in ["bug", "feature"] {
        let file = path(&format!(".github/ISSUE_TEMPLATE/{form}.yml"));
        check("vendor.github-issue-forms", &file).must_be_well();
    }
    check("vendor.dependabot", &path(".github/dependabot.yml")).must_be_well();
}

#[test]
fn a_broken_workflow_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ci.yml");
    let broken = with(&text(WORKFLOWS[0]), "runs-on:", "run-on:");
    std::fs::write(&file, broken).unwrap();
    check("vendor.github-workflows", &file).must_be_refused("run-on");
}

#[test]
fn workflows_call_what_people_call() {
    assert!(text(WORKFLOWS[0]).contains("run: .ci/run\n"));
    assert!(text(WORKFLOWS[1]).contains("run: cargo xtask package\n"));
    assert!(text(WORKFLOWS[1]).contains("file: packaging/docker/Dockerfile\n"));
}
