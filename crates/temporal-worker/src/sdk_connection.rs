//! Converts the engine's connection options to those of Temporal's SDK.

use leasehold_engine_temporal::{
    ApiKey, InvalidTemporalOptions, TemporalOptions, TemporalTls, error_chain,
};
use temporalio_client::errors::ClientConnectError;
use temporalio_client::{ClientTlsOptions, ConnectionOptions, TlsOptions, Url};

pub(crate) fn options(
    temporal: &TemporalOptions,
) -> Result<ConnectionOptions, InvalidTemporalOptions> {
    // The SDK uses plain text for an `http` address even with TLS options, so the scheme must be correct.
    let url = Url::parse(&temporal.url()?);
    let url = url.map_err(|_| InvalidTemporalOptions::Address(temporal.address.clone()))?;
    let tls = (url.scheme() == "https").then(|| sdk_tls(temporal.tls.clone().unwrap_or_default()));
    Ok(ConnectionOptions::new(url)
        .identity(&temporal.identity)
        .connect_timeout(temporal.connect_timeout)
        .maybe_tls_options(tls)
        .maybe_api_key(
            temporal
                .api_key
                .as_ref()
                .map(ApiKey::reveal)
                .map(str::to_owned),
        )
        // The load-balanced channel waits forever while no address answers. A plain one resolves the name on each connect and returns the error.
        .dns_load_balancing(None)
        .build())
}

fn sdk_tls(tls: TemporalTls) -> TlsOptions {
    let client = tls.client.map(|client| {
        ClientTlsOptions::builder()
            .client_cert(client.certificate)
            .client_private_key(client.key)
            .build()
    });
    TlsOptions::builder()
        .maybe_server_root_ca_cert(tls.ca)
        .maybe_domain(tls.domain)
        .maybe_client_tls_options(client)
        .build()
}

/// Returns the text of a connection error.
pub(crate) fn explain(error: &ClientConnectError) -> String {
    match error {
        ClientConnectError::SystemInfoCallError(status) => {
            format!("{:?}: {}", status.code(), status.message())
        }
        ClientConnectError::TonicTransportError(error) => error_chain(error),
        error => error_chain(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_engine_temporal::ClientCertificate;

    #[test]
    fn certificates_and_the_key_reach_the_sdk() {
        let temporal = TemporalOptions {
            address: "10.0.0.1:7233".to_owned(),
            api_key: Some("secret".to_owned().into()),
            tls: Some(TemporalTls {
                ca: Some(b"ca".to_vec()),
                domain: Some("temporal.example".to_owned()),
                client: Some(ClientCertificate {
                    certificate: b"certificate".to_vec(),
                    key: b"key".to_vec(),
                }),
            }),
            ..TemporalOptions::default()
        };
        let sdk = options(&temporal).unwrap();
        assert_eq!(sdk.target.as_str(), "https://10.0.0.1:7233/");
        assert_eq!(sdk.api_key.as_deref(), Some("secret"));
        let tls = sdk.tls_options.unwrap();
        assert_eq!(tls.server_root_ca_cert.as_deref(), Some(&b"ca"[..]));
        assert_eq!(tls.domain.as_deref(), Some("temporal.example"));
        let client = tls.client_tls_options.unwrap();
        assert_eq!(client.client_cert, b"certificate");
        assert_eq!(client.client_private_key, b"key");
    }
}
