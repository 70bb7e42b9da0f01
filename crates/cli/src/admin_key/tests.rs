//! The administrator key survives a crash at every step, is readable by its owner only, and is created once.
#![allow(clippy::unwrap_used)]

use super::*;
use leasehold_store::SchemaStore;
use leasehold_store::key::KeyStore;
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use std::os::unix::fs::PermissionsExt;
use tempfile::TempDir;

struct TestEnv {
    dir: TempDir,
    store: SqliteStore,
}

impl TestEnv {
    async fn new() -> Self {
        let dir = leasehold_testkit::temp_dir();
        let path = dir.path().join("leasehold.db");
        let store = SqliteStore::open(&path, &SqliteOptions::default()).unwrap();
        store.schema_migrate().await.unwrap();
        Self { dir, store }
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn file(&self) -> AtomicFile {
        AtomicFile::new(&self.data(), FILE)
    }

    async fn ensure(&self) -> AdminKey {
        ensure(&self.store, &self.data()).await.unwrap()
    }

    /// Asserts that the file contains the only key and that it is valid.
    async fn assert_one_valid_key(&self) {
        let text = self.file().read().unwrap().unwrap();
        assert!(is_admin_key(&self.store, &text).await.unwrap());
        assert_eq!(self.file().read_draft().unwrap(), None);
        assert_eq!(self.keys().await, 1);
    }

    async fn keys(&self) -> usize {
        let page = leasehold_store::Page {
            after: None,
            limit: 100,
        };
        self.store.key_list(None, page).await.unwrap().len()
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn first_start_creates_a_key_and_the_second_reuses_it() {
    let env = TestEnv::new().await;
    let path = env.data().join(FILE);
    assert_eq!(env.ensure().await, AdminKey::Created(path.clone()));
    env.assert_one_valid_key().await;
    assert_eq!((mode(&path), mode(&env.data())), (0o600, 0o700));
    let first = env.file().read().unwrap();
    assert_eq!(env.ensure().await, AdminKey::Existing(path));
    assert_eq!(env.file().read().unwrap(), first);
    env.assert_one_valid_key().await;
}

#[tokio::test]
async fn crash_before_the_store_knows_the_key() {
    let env = TestEnv::new().await;
    let draft = AdminDraft::new("doomed").unwrap();
    env.file().write_draft(&line(draft.secret())).unwrap();
    assert!(matches!(env.ensure().await, AdminKey::Created(_)));
    env.assert_one_valid_key().await;
    assert_ne!(env.file().read().unwrap(), Some(line(draft.secret())));
}

#[tokio::test]
async fn crash_while_writing_the_key() {
    let env = TestEnv::new().await;
    env.file().write_draft("lh_adm").unwrap();
    assert!(matches!(env.ensure().await, AdminKey::Created(_)));
    env.assert_one_valid_key().await;
}

#[tokio::test]
async fn crash_after_the_store_knows_the_key() {
    let env = TestEnv::new().await;
    let draft = AdminDraft::new("doomed").unwrap();
    env.file().write_draft(&line(draft.secret())).unwrap();
    assert!(draft.create_first(&env.store).await.unwrap());
    assert!(matches!(env.ensure().await, AdminKey::Existing(_)));
    env.assert_one_valid_key().await;
    assert_eq!(env.file().read().unwrap(), Some(line(draft.secret())));
}

#[tokio::test]
async fn later_instance_stores_no_key() {
    let env = TestEnv::new().await;
    let other = AdminDraft::new("the first instance").unwrap();
    assert!(other.create_first(&env.store).await.unwrap());
    assert_eq!(env.ensure().await, AdminKey::Missing);
    assert!(!env.data().exists());
}

#[tokio::test]
async fn start_with_all_keys_revoked_creates_a_new_key() {
    let env = TestEnv::new().await;
    env.ensure().await;
    let text = env.file().read().unwrap().unwrap();
    let hash = Secret::parse(text.trim()).unwrap().hash();
    let key = env.store.key_find(&hash).await.unwrap().unwrap();
    env.store
        .key_revoke(key.id, &leasehold_store::Actor::Local)
        .await
        .unwrap();
    assert!(matches!(env.ensure().await, AdminKey::Created(_)));
    assert_ne!(env.file().read().unwrap(), Some(text));
}

#[tokio::test]
async fn admin_key_command_replaces_an_invalid_file() {
    let env = TestEnv::new().await;
    env.ensure().await;
    std::fs::write(env.data().join(FILE), "not a key\n").unwrap();
    assert!(matches!(env.ensure().await, AdminKey::Invalid(_)));
    let path = create(&env.store, &env.data()).await.unwrap();
    assert_eq!(mode(&path), 0o600);
    assert_eq!(env.ensure().await, AdminKey::Existing(path));
    assert_eq!(env.keys().await, 2);
}

#[tokio::test]
async fn key_of_another_store_is_kept() {
    let (env, other) = (TestEnv::new().await, TestEnv::new().await);
    env.ensure().await;
    let text = env.file().read().unwrap();
    for error in [
        ensure(&other.store, &env.data()).await.unwrap_err(),
        create(&other.store, &env.data()).await.unwrap_err(),
    ] {
        let failure = error.downcast_ref::<Failure>().unwrap();
        assert_eq!(failure.exit, Exit::Usage);
        assert!(failure.message.contains("--data-dir"), "{failure}");
    }
    assert_eq!(env.file().read().unwrap(), text);
    assert_eq!(other.keys().await, 0);
}
