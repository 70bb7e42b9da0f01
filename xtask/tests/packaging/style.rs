//! The style of the YAML files.

use leasehold_testkit::YAMLLINT;

use crate::{Outcome, path, run};

/// Templates are not YAML before rendering.
const FILES: [&str; 16] = [
    ".github/ISSUE_TEMPLATE/bug.yml",
    ".github/ISSUE_TEMPLATE/feature.yml",
    ".github/dependabot.yml",
    ".github/workflows/ci.yml",
    ".github/workflows/dependencies.yml",
    ".github/workflows/release.yml",
    "packaging/.yamllint.yaml",
    "packaging/compose/compose.yaml",
    "packaging/compose/observe/dashboards.yml",
    "packaging/compose/observe/datasources.yml",
    "packaging/compose/observe/prometheus.yml",
    "packaging/helm/leasehold/Chart.yaml",
    "packaging/helm/leasehold/values.yaml",
    "packaging/prometheus/leasehold.rules.test.yml",
    "packaging/prometheus/leasehold.rules.yml",
    "packaging/prometheus/prometheus.yml",
];

fn lint(file: &std::path::Path) -> Outcome {
    let mut command = YAMLLINT.command().unwrap();
    let rules = path("packaging/.yamllint.yaml");
    run(command.args(["--strict", "-c"]).arg(rules).arg(file))
}

#[test]
fn yamllint_accepts_each_file() {
    for file in FILES {
        lint(&path(file)).must_succeed();
    }
}

#[test]
fn yamllint_rejects_duplicate_keys() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("twice.yaml");
    std::fs::write(&file, "replicas: 1\nreplicas: 2\n").unwrap();
    lint(&file).must_fail_with("duplication of key \"replicas\"");
}
