//! The installation's secret: created once, the same for every caller.

use crate::Fixture;
use crate::factory::ok;
use futures::future::join_all;

/// The first call decides the secret; later ones return it.
pub async fn secret_is_created_once(f: Fixture) {
    let first = ok(f.store.installation_secret(&[1; 32]).await);
    assert_eq!(first, [1; 32]);
    assert_eq!(ok(f.store.installation_secret(&[2; 32]).await), first);
}

/// Concurrent first calls return the same secret, one of those that they offered.
pub async fn concurrent_calls_agree_on_one_secret(f: Fixture) {
    let calls = (1..=8u8).map(|number| {
        let store = f.store.clone();
        tokio::spawn(async move { ok(store.installation_secret(&[number; 32]).await) })
    });
    let secrets: Vec<[u8; 32]> = join_all(calls)
        .await
        .into_iter()
        .map(|secret| secret.expect("the call did not panic"))
        .collect();
    assert!(secrets.iter().all(|secret| *secret == secrets[0]));
    assert!((1..=8).contains(&secrets[0][0]));
}
