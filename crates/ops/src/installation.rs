//! The installation's secret: creates it at the first use.

use leasehold_store::{Error, ErrorKind, Result, Store};

/// Returns the installation's secret, the same in every process. The first call of the installation creates it.
pub async fn secret(store: &dyn Store) -> Result<[u8; 32]> {
    let mut fresh = [0; 32];
    getrandom::fill(&mut fresh).map_err(|error| {
        let text = format!("failed to read random bytes from the system: {error}");
        Error::new("installation_secret", ErrorKind::Broken(text))
    })?;
    store.installation_secret(&fresh).await
}
