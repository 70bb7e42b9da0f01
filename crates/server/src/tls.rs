//! TLS for the listener: loads certificate and key from their files and reloads them on request. Knows no HTTP.

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use thiserror::Error;
use tokio_rustls::TlsAcceptor;

/// Why TLS cannot be set up.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file cannot be read or has invalid content.
    #[error("{setting}: {} {problem}", .file.display())]
    File {
        /// The setting that names it.
        setting: &'static str,
        /// The file.
        file: PathBuf,
        /// What is wrong with the file.
        problem: String,
    },
    /// Certificate and key do not match, or cannot be used.
    #[error(
        "cannot use the certificate and key (server.tls_certificate_file, server.tls_key_file): {0}"
    )]
    Pair(#[from] rustls::Error),
}

const CERTIFICATE: &str = "server.tls_certificate_file";
const KEY: &str = "server.tls_key_file";

/// A certificate and its key. Cheap to clone; a reload applies to all clones.
#[derive(Clone)]
pub struct Tls(Arc<TlsInner>);

struct TlsInner {
    certificate: PathBuf,
    key: PathBuf,
    config: RwLock<Arc<ServerConfig>>,
}

impl Tls {
    /// Loads both PEM files. The certificate file holds the server's certificate first, then the intermediate ones.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let config = config(certificate, key)?;
        Ok(Self(Arc::new(TlsInner {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            config: RwLock::new(config),
        })))
    }

    /// Reloads both files for new connections. On an error the loaded certificate stays in use.
    pub fn reload(&self) -> Result<(), TlsError> {
        let config = config(&self.0.certificate, &self.0.key)?;
        *self
            .0
            .config
            .write()
            .unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        let config = self.0.config.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&config).into()
    }
}

fn config(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    let text = read(CERTIFICATE, certificate)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let chain = chain.map_err(|error| wrong(CERTIFICATE, certificate, &error))?;
    if chain.is_empty() {
        return Err(wrong(CERTIFICATE, certificate, &pem::Error::NoItemsFound));
    }
    let text = read(KEY, key)?;
    let private = PrivateKeyDer::from_pem_slice(&text).map_err(|error| wrong(KEY, key, &error))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, private)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn read(setting: &'static str, file: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(file).map_err(|error| TlsError::File {
        setting,
        file: file.to_owned(),
        problem: format!("cannot be read: {error}"),
    })
}

fn wrong(setting: &'static str, file: &Path, error: &pem::Error) -> TlsError {
    let what = if setting == KEY { "key" } else { "certificate" };
    TlsError::File {
        setting,
        file: file.to_owned(),
        problem: match error {
            pem::Error::NoItemsFound => format!("contains no PEM {what}"),
            error => format!("is not valid PEM: {error:?}"),
        },
    }
}
