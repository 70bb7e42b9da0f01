//! The macro `suite!`, which creates a test for each case. The build script finds the cases, and a test here checks that it finds all.

include!(concat!(env!("OUT_DIR"), "/cases.rs"));

/// Creates one test for each case, on the stores that `$fixture` (a path that starts with `crate`) creates.
#[macro_export]
macro_rules! suite {
    ($fixture:path) => {
        $crate::cases! { tests $fixture }
    };

    (@tests $fixture:path; $($noun:ident { $($case:ident)* })*) => {
        $(
            mod $noun {
                $(
                    #[::tokio::test(flavor = "multi_thread")]
                    async fn $case() {
                        $crate::$noun::$case($fixture().await).await;
                    }
                )*
            }
        )*
    };

    (@names $fixture:path; $($noun:ident { $($case:ident)* })*) => {
        &[$((stringify!($noun), &[$(stringify!($case)),*] as &[&str])),*] as &[(&str, &[&str])]
    };
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    /// Collects every public function below `path` that takes a fixture, as `noun::case`.
    fn cases_in(noun: &str, path: &Path, found: &mut BTreeSet<String>) {
        if path.is_dir() {
            for entry in fs::read_dir(path).unwrap() {
                cases_in(noun, &entry.unwrap().path(), found);
            }
            return;
        }
        let text = fs::read_to_string(path).unwrap();
        for function in text.split("\npub async fn ").skip(1) {
            let (name, rest) = function.split_once('(').unwrap();
            let (parameters, _) = rest.split_once(')').unwrap();
            if parameters.contains(": Fixture") {
                found.insert(format!("{noun}::{name}"));
            }
        }
    }

    #[test]
    fn every_case_is_listed() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut written = BTreeSet::new();
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let noun = path.file_stem().unwrap().to_str().unwrap().to_owned();
            cases_in(&noun, &path, &mut written);
        }
        let listed: BTreeSet<String> = cases!(names crate::fixture)
            .iter()
            .flat_map(|(noun, cases)| cases.iter().map(move |case| format!("{noun}::{case}")))
            .collect();
        assert_eq!(listed, written);
    }
}
