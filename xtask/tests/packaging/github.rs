//! The files that GitHub reads: workflows, issue forms, dependency updates. The checker includes their schemas.

use leasehold_testkit::CHECK_JSONSCHEMA;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::documents::{documents, names, texts};
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
    fs::write(&file, broken).unwrap();
    check("vendor.github-workflows", &file).must_fail_with("run-on");
}

#[test]
fn workflows_use_the_developer_commands() {
    assert!(text(WORKFLOWS[0]).contains("run: .ci/run\n"));
    assert!(text(WORKFLOWS[1]).contains("run: cargo xtask package --part programs --tag"));
    assert!(text(WORKFLOWS[1]).contains("file: packaging/docker/Dockerfile\n"));
    assert!(text(WORKFLOWS[2]).contains("run: cargo deny --locked check\n"));
}

/// The jobs of the release workflow.
fn release() -> Value {
    documents(&text(WORKFLOWS[1])).remove(0)["jobs"].take()
}

fn steps(job: &Value) -> &Vec<Value> {
    job["steps"].as_array().unwrap()
}

/// The step of a job that uses this action.
fn action<'a>(job: &'a Value, name: &str) -> &'a Value {
    let uses = |step: &&Value| {
        step["uses"]
            .as_str()
            .is_some_and(|uses| uses.starts_with(name))
    };
    steps(job).iter().find(uses).unwrap()
}

/// A file that two machines build differs, and then one of their checksum files is wrong.
#[test]
fn each_file_of_a_release_is_built_by_one_machine() {
    let jobs = release();
    let mut parts = Vec::new();
    let mut artifacts = BTreeSet::new();
    for (name, job) in jobs.as_object().unwrap() {
        let commands = steps(job).iter().filter_map(|step| step["run"].as_str());
        for command in commands.filter(|run| run.contains("cargo xtask package")) {
            parts.push((name.as_str(), command));
            let artifact = action(job, "actions/upload-artifact");
            assert!(
                artifacts.insert(artifact["with"]["name"].as_str()),
                "{name}"
            );
        }
    }
    let chart = r#"cargo xtask package --part chart --tag "$TAG""#;
    let programs = r#"cargo xtask package --part programs --tag "$TAG""#;
    assert_eq!(parts, [("archives", programs), ("chart", chart)]);
    assert_eq!(jobs["chart"].get("strategy"), None);
    let runners = texts(&jobs["archives"]["strategy"]["matrix"]["runner"]);
    assert_eq!(runners, ["ubuntu-24.04", "ubuntu-24.04-arm"]);
    assert_eq!(jobs["archives"]["runs-on"], "${{ matrix.runner }}");
}

/// Others' artifacts, such as build records of images, do not belong to a release.
#[test]
fn release_consists_of_the_packages_after_their_checksums_were_checked() {
    let publish = &release()["publish"];
    assert_eq!(texts(&publish["needs"]), ["chart", "archives", "images"]);
    let download = action(publish, "actions/download-artifact");
    assert_eq!(download["with"]["pattern"], "packages-*");
    let runs: Vec<&str> = steps(publish)
        .iter()
        .filter_map(|step| step["run"].as_str())
        .collect();
    assert_eq!(runs[0], "sha256sum --check --strict SHA256SUMS-*");
    assert!(
        runs.last()
            .unwrap()
            .starts_with("gh release create \"$TAG\" packages/*"),
        "{runs:?}"
    );
}

#[test]
fn image_of_a_release_has_the_tag_that_the_chart_names() {
    let jobs = release();
    let is_version = |step: &&Value| step["id"] == "version";
    let step = steps(&jobs["chart"]).iter().find(is_version).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("output");
    let chart = documents(&text("packaging/helm/leasehold/Chart.yaml")).remove(0);
    let version = chart["appVersion"].as_str().unwrap();
    let mut shell = Command::new("sh");
    shell.arg("-ec").arg(step["run"].as_str().unwrap());
    shell
        .env("TAG", format!("v{version}"))
        .env("GITHUB_OUTPUT", &output);
    run(&mut shell).must_succeed();
    assert_eq!(
        fs::read_to_string(&output).unwrap(),
        format!("version={version}\n")
    );
    assert_eq!(
        jobs["chart"]["outputs"]["version"],
        "${{ steps.version.outputs.version }}"
    );

    let tag = "ghcr.io/${{ github.repository }}:${{ needs.chart.outputs.version }}";
    let built = &action(&jobs["images"], "docker/build-push-action")["with"]["tags"];
    assert_eq!(*built, format!("{tag}-${{{{ matrix.architecture }}}}"));
    let is_manifest = |step: &&Value| step["env"]["IMAGE"] == tag;
    let manifest = steps(&jobs["publish"]).iter().find(is_manifest).unwrap();
    let architectures = jobs["images"]["strategy"]["matrix"]["include"]
        .as_array()
        .unwrap();
    for one in architectures {
        let part = format!("\"$IMAGE-{}\"", one["architecture"].as_str().unwrap());
        assert!(manifest["run"].as_str().unwrap().contains(&part), "{part}");
    }
}

/// Under emulation the compiler takes hours.
#[test]
fn images_compile_on_machines_of_their_architecture() {
    assert!(!text(WORKFLOWS[1]).contains("qemu"));
    let images = &release()["images"];
    assert_eq!(images["runs-on"], "${{ matrix.runner }}");
    let build = &action(images, "docker/build-push-action")["with"];
    assert_eq!(build["platforms"], "linux/${{ matrix.architecture }}");
    let machines = images["strategy"]["matrix"]["include"].as_array().unwrap();
    let machines: Vec<_> = machines
        .iter()
        .map(|one| {
            (
                one["architecture"].as_str().unwrap(),
                one["runner"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        machines,
        [("amd64", "ubuntu-24.04"), ("arm64", "ubuntu-24.04-arm")]
    );
    assert_eq!(
        names(&release()),
        ["archives", "chart", "images", "publish"]
    );
}
