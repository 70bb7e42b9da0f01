//! Verifies the certificate of a PostgreSQL server as far as `sslmode` requires. Knows no URL and no file.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme,
};
use std::sync::Arc;

/// What is checked of the server's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checks {
    /// Nothing: the connection is encrypted, but its other end is unknown.
    Nothing,
    /// A trusted authority signed it.
    Chain,
    /// A trusted authority signed it, and it has the name of the host.
    Full,
}

#[derive(Debug)]
pub(super) struct Verifier {
    checks: Checks,
    chain: Arc<WebPkiServerVerifier>,
    /// The certificates that the operator trusts.
    trusted: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    pub(super) fn new(
        checks: Checks,
        roots: RootCertStore,
        trusted: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, Error> {
        let chain =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .build()
                .map_err(|error| Error::Other(OtherError(Arc::new(error))))?;
        Ok(Self {
            checks,
            chain,
            trusted,
            provider,
        })
    }

    /// Whether the operator trusts exactly this certificate. A self-signed one that may also sign others is no valid end of a chain by
    /// the rules of the web, but libpq accepts it.
    fn is_trusted_itself(&self, certificate: &CertificateDer<'_>, error: &Error) -> bool {
        matches!(error, Error::InvalidCertificate(CertificateError::Other(_)))
            && self.trusted.contains(certificate)
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.checks == Checks::Nothing {
            return Ok(ServerCertVerified::assertion());
        }
        let verified = self
            .chain
            .verify_server_cert(certificate, intermediates, name, ocsp, now);
        match verified {
            // The name is checked after the chain.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.checks == Checks::Chain => Ok(ServerCertVerified::assertion()),
            Err(error) if self.is_trusted_itself(certificate, &error) => {
                if self.checks == Checks::Full {
                    verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                }
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}
