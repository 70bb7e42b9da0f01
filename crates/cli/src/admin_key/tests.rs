//! The first key survives a crash at every step, is readable by its owner only, and is made once.
#![allow(clippy::unwrap_used)]

use super::*;
use leasehold_store::SchemaStore;
use leasehold_store::key::KeyStore;
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use std::os::unix::fs::PermissionsExt;
use tempfile::TempDir;

struct Place {
    folder: TempDir,
    store: SqliteStore,
}

impl Place {
    async fn new() -> Self {
        let folder = leasehold_testkit::temp_dir();
        let path = folder.path().join("leasehold.db");
        let store = SqliteStore::open(&path, &SqliteOptions::default()).unwrap();
        store.schema_migrate().await.unwrap();
        Self { folder, store }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn file(&self) -> SafeFile {
        SafeFile::new(&self.data(), FILE)
    }

    async fn ensure(&self) -> AdminKey {
        ensure(&self.store, &self.data()).await.unwrap()
    }

    /// The key in the file opens everything, and it is the only one.
    async fn assert_well(&self) {
        let text = self.file().read().unwrap().unwrap();
        assert!(opens_all(&self.store, &text).await.unwrap());
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
async fn the_first_start_makes_a_key_for_its_owner_only_and_the_second_keeps_it() {
    let place = Place::new().await;
    let path = place.data().join(FILE);
    assert_eq!(place.ensure().await, AdminKey::Made(path.clone()));
    place.assert_well().await;
    assert_eq!((mode(&path), mode(&place.data())), (0o600, 0o700));
    let first = place.file().read().unwrap();
    assert_eq!(place.ensure().await, AdminKey::Kept(path));
    assert_eq!(place.file().read().unwrap(), first);
    place.assert_well().await;
}

#[tokio::test]
async fn a_crash_before_the_store_knows_the_key_costs_nothing() {
    let place = Place::new().await;
    let draft = AdminDraft::new("doomed").unwrap();
    place.file().write_draft(&line(draft.secret())).unwrap();
    assert!(matches!(place.ensure().await, AdminKey::Made(_)));
    place.assert_well().await;
    assert_ne!(place.file().read().unwrap(), Some(line(draft.secret())));
}

#[tokio::test]
async fn a_crash_in_the_middle_of_writing_costs_nothing() {
    let place = Place::new().await;
    place.file().write_draft("lh_adm").unwrap();
    assert!(matches!(place.ensure().await, AdminKey::Made(_)));
    place.assert_well().await;
}

#[tokio::test]
async fn a_crash_after_the_store_knows_the_key_locks_nobody_out() {
    let place = Place::new().await;
    let draft = AdminDraft::new("doomed").unwrap();
    place.file().write_draft(&line(draft.secret())).unwrap();
    assert!(draft.create_first(&place.store).await.unwrap());
    assert!(matches!(place.ensure().await, AdminKey::Kept(_)));
    place.assert_well().await;
    assert_eq!(place.file().read().unwrap(), Some(line(draft.secret())));
}

#[tokio::test]
async fn an_instance_that_was_not_the_first_keeps_no_key() {
    let place = Place::new().await;
    let other = AdminDraft::new("the first instance").unwrap();
    assert!(other.create_first(&place.store).await.unwrap());
    assert_eq!(place.ensure().await, AdminKey::Elsewhere);
    assert!(!place.data().exists());
}

#[tokio::test]
async fn when_every_key_is_revoked_the_next_start_makes_another() {
    let place = Place::new().await;
    place.ensure().await;
    let text = place.file().read().unwrap().unwrap();
    let hash = Secret::parse(text.trim()).unwrap().hash();
    let key = place.store.key_find(&hash).await.unwrap().unwrap();
    place.store.key_revoke(key.id).await.unwrap();
    assert!(matches!(place.ensure().await, AdminKey::Made(_)));
    assert_ne!(place.file().read().unwrap(), Some(text));
}

#[tokio::test]
async fn whoever_lost_the_key_gets_another_and_a_stale_file_is_told_from_a_good_one() {
    let place = Place::new().await;
    place.ensure().await;
    std::fs::write(place.data().join(FILE), "what was this?\n").unwrap();
    assert!(matches!(place.ensure().await, AdminKey::Stale(_)));
    let path = make(&place.store, &place.data()).await.unwrap();
    assert_eq!(mode(&path), 0o600);
    assert_eq!(place.ensure().await, AdminKey::Kept(path));
    assert_eq!(place.keys().await, 2);
}
