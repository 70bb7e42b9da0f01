//! The testkit's SQL statements, one file each. Substitutes names; executes nothing.

pub(crate) const DATABASE_CREATE: &str = include_str!("../sql/database/create.sql");
pub(crate) const DATABASE_DROP: &str = include_str!("../sql/database/drop.sql");
pub(crate) const DATABASE_EXISTS: &str = include_str!("../sql/database/exists.sql");
pub(crate) const DATABASE_DISCONNECT: &str = include_str!("../sql/database/disconnect.sql");
pub(crate) const DATABASE_DEADLOCKS: &str = include_str!("../sql/database/deadlocks.sql");
pub(crate) const DATABASE_ISOLATION: &str = include_str!("../sql/database/isolation.sql");
pub(crate) const DATABASE_RENAME: &str = include_str!("../sql/database/rename.sql");
pub(crate) const IDLE_TABLE: &str = include_str!("../sql/database/idle_table.sql");
pub(crate) const IDLE_TAKE: &str = include_str!("../sql/database/idle_take.sql");
pub(crate) const IDLE_ADD: &str = include_str!("../sql/database/idle_add.sql");
pub(crate) const SCHEMA_HASH: &str = include_str!("../sql/database/schema_hash.sql");
pub(crate) const CONTENT_READ: &str = include_str!("../sql/database/content_read.sql");
pub(crate) const CONTENT_GET: &str = include_str!("../sql/database/content_get.sql");
pub(crate) const CONTENT_SET: &str = include_str!("../sql/database/content_set.sql");
pub(crate) const CONTENT_RESTORE: &str = include_str!("../sql/database/content_restore.sql");
pub(crate) const REPLICA_DETACH: &str = include_str!("../sql/replica/detach.sql");
pub(crate) const REPLICA_PROMOTE: &str = include_str!("../sql/replica/promote.sql");
pub(crate) const REPLICA_RECEIVES: &str = include_str!("../sql/replica/receives.sql");
pub(crate) const REPLICA_RELOAD: &str = include_str!("../sql/replica/reload.sql");
pub(crate) const REPLICA_REPLAYED: &str = include_str!("../sql/replica/replayed.sql");
pub(crate) const REPLICA_WRITTEN: &str = include_str!("../sql/replica/written.sql");
pub(crate) const DATABASE_LOCK: &str = include_str!("../sql/database/lock.sql");

/// Replaces each `{key}` by a database name, because PostgreSQL accepts no parameters in these statements.
///
/// # Panics
/// When a name has other characters than lower case letters, digits and underscores, or is too long for PostgreSQL.
pub(crate) fn fill(statement: &str, names: &[(&str, &str)]) -> String {
    let mut filled = statement.to_owned();
    for (key, name) in names {
        assert!(
            is_plain(name),
            "not a plain database name of at most 63 bytes: {name:?}"
        );
        filled = filled.replace(&format!("{{{key}}}"), name);
    }
    filled
}

fn is_plain(name: &str) -> bool {
    (1..=63).contains(&name.len())
        && name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_substituted() {
        assert_eq!(fill("a {name} b", &[("name", "t_1")]), "a t_1 b");
    }

    #[test]
    #[should_panic(expected = "not a plain database name")]
    fn name_with_special_characters_panics() {
        fill("{name}", &[("name", "a; b")]);
    }
}
