//! TLS to PostgreSQL: what `sslmode` and `sslrootcert` of a database URL mean, as libpq defines them. Connects to nothing.

mod url;
mod verifier;

use crate::options::PostgresOptions;
use leasehold_store::{Error, ErrorKind, Result};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::sync::Arc;
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;
use url::{Mode, UrlTls};
use verifier::{Checks, Verifier};

/// The value of `sslrootcert` that stands for the public certificate authorities.
const SYSTEM: &str = "system";

/// How to connect, without the address.
pub(crate) struct Tls {
    /// The URL without the parameters that the driver does not know.
    pub(crate) url: String,
    pub(crate) mode: SslMode,
    pub(crate) connect: MakeRustlsConnect,
}

fn invalid(parameter: &'static str, text: impl Into<String>) -> Error {
    Error::new(parameter, ErrorKind::Value(text.into()))
}

/// Reads the TLS parameters of the URL and the CA certificates.
///
/// # Errors
/// `Value` with the name of the parameter as its context; the text contains nothing else of the URL.
pub(crate) fn configure(options: &PostgresOptions) -> Result<Tls> {
    let UrlTls { url, mode, root } = url::split(&options.url)?;
    let (mode, checks) = match (&options.tls_ca, mode) {
        (Some(_), _) if root.is_some() => {
            return Err(invalid(
                "sslrootcert",
                "a CA certificate is set twice: in the settings and as sslrootcert; remove one of them",
            ));
        }
        (Some(_), Some(Mode::Disable)) => {
            return Err(invalid(
                "sslmode",
                "a CA certificate is set, but the database URL has sslmode=disable; remove one of them",
            ));
        }
        (Some(_), Some(Mode::VerifyCa)) => (SslMode::Require, Checks::Chain),
        (Some(_), _) => (SslMode::Require, Checks::Full),
        (None, mode) => meaning(mode, root.as_deref())?,
    };
    let trusted = match (&options.tls_ca, root.as_deref()) {
        (Some(pem), _) => certificates(pem)?,
        // Without TLS libpq does not read the file.
        (None, Some(file)) if file != SYSTEM && mode != SslMode::Disable => {
            let pem = std::fs::read(file)
                .map_err(|error| invalid("sslrootcert", format!("cannot read {file}: {error}")))?;
            certificates(&pem)?
        }
        (None, _) => Vec::new(),
    };
    let roots = authorities(&trusted)?;
    let connect = connector(checks, roots, trusted)
        .map_err(|error| invalid("sslmode", format!("failed to set up TLS: {error}")))?;
    Ok(Tls { url, mode, connect })
}

/// What the parameters require and check.
fn meaning(mode: Option<Mode>, root: Option<&str>) -> Result<(SslMode, Checks)> {
    if root == Some(SYSTEM) {
        return match mode {
            None | Some(Mode::VerifyFull) => Ok((SslMode::Require, Checks::Full)),
            Some(_) => Err(invalid(
                "sslmode",
                "sslrootcert=system requires sslmode=verify-full",
            )),
        };
    }
    let checks = root.map_or(Checks::Nothing, |_| Checks::Chain);
    Ok(match mode {
        Some(Mode::Disable) => (SslMode::Disable, Checks::Nothing),
        None | Some(Mode::Allow | Mode::Prefer) => (SslMode::Prefer, checks),
        Some(Mode::Require) => (SslMode::Require, checks),
        Some(Mode::VerifyCa) => (SslMode::Require, Checks::Chain),
        Some(Mode::VerifyFull) => (SslMode::Require, Checks::Full),
    })
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>> {
    let all: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let all =
        all.map_err(|error| invalid("sslrootcert", format!("invalid CA certificate: {error}")))?;
    if all.is_empty() {
        return Err(invalid(
            "sslrootcert",
            "the CA certificate file contains no PEM certificate",
        ));
    }
    Ok(all)
}

/// Returns these certificates as authorities; none: the public certificate authorities.
fn authorities(trusted: &[CertificateDer<'static>]) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in trusted {
        roots
            .add(certificate.clone())
            .map_err(|error| invalid("sslrootcert", format!("invalid CA certificate: {error}")))?;
    }
    if trusted.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    Ok(roots)
}

fn connector(
    checks: Checks,
    roots: RootCertStore,
    trusted: Vec<CertificateDer<'static>>,
) -> std::result::Result<MakeRustlsConnect, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Verifier::new(checks, roots, trusted, Arc::clone(&provider))?;
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}
