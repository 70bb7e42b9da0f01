//! Routes may read the store but not write it: writes belong to operations of `ops`, which contain the checks.

use super::finding::{Finding, line_of};
use super::rust_text::{is_word, take_apart};

const ROUTES: &str = "crates/server/src/routes/";

/// Suffixes of store methods that only read; `clone` is of the handle.
const READS: [&str; 10] = [
    "clone", "counts", "find", "get", "limit", "list", "now", "overview", "slots", "timeline",
];

pub(super) fn only_read_the_store(path: &str, text: &str) -> Vec<Finding> {
    if !path.starts_with(ROUTES) || !path.ends_with(".rs") {
        return Vec::new();
    }
    let code = take_apart(text).code;
    code.match_indices("store")
        .filter(|(at, _)| !code[..*at].ends_with(is_word))
        .filter_map(|(at, store)| {
            let method = method_called(&code[at + store.len()..])?;
            let is_read = READS.contains(&method.rsplit('_').next()?);
            let message =
                format!("a route calls `{method}` of the store: call an operation of ops");
            (!is_read).then(|| Finding::new(path, line_of(&code, at), message))
        })
        .collect()
}

/// The method that is called on what ends here, also on the next line.
fn method_called(rest: &str) -> Option<&str> {
    let rest = rest.trim_start().strip_prefix('.')?.trim_start();
    let (name, after) = rest.split_at(rest.find(|c| !is_word(c))?);
    after.starts_with('(').then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "crates/server/src/routes/keys.rs";

    #[test]
    fn a_change_in_a_route_is_found() {
        for call in [
            "state.store.key_revoke(id).await",
            "state\n    .store\n    .job_limit_set(3)",
            "let store = &*state.store;\nstore.notify(wake)",
        ] {
            assert_eq!(only_read_the_store(PATH, call).len(), 1, "{call}");
        }
        let found = only_read_the_store(PATH, "fn a() {\n    state.store.job_cancel(id);\n}");
        assert_eq!(found[0].line(), 2);
    }

    #[test]
    fn reading_and_other_places_are_well() {
        for call in [
            "state.store.key_get(id)",
            "state.store.clone()",
            "restore.key_revoke(id)",
            "store::fresh_id()",
            "ops::key::revoke(&*state.store, id)",
            "// state.store.key_revoke(id)",
        ] {
            assert_eq!(only_read_the_store(PATH, call), [], "{call}");
        }
        let elsewhere = only_read_the_store("crates/ops/src/key.rs", "store.key_revoke(id)");
        assert_eq!(elsewhere, []);
    }
}
