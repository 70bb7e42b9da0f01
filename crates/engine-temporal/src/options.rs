//! The connection options of a Temporal namespace. Reads no file and no environment, and opens no connection.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;
use thiserror::Error;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity, Uri};

/// HTTP/2 keep-alive: interval of the pings and timeout of their answers.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(15);

/// How to connect to Temporal, and how graphs run there.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct TemporalOptions {
    /// The frontend: `host:port`, or a URL that begins with `http://` or `https://`.
    ///
    /// A bare `host:port` means TLS if [`tls`](Self::tls) or [`api_key`](Self::api_key) is given, and plain text if not.
    pub address: String,
    /// The namespace of all workflows.
    pub namespace: String,
    /// TLS options; an `https://` address without them uses TLS with the system's root certificates.
    pub tls: Option<TemporalTls>,
    /// Sent as `authorization: Bearer …` with every call, as Temporal Cloud requires.
    pub api_key: Option<ApiKey>,
    /// The client identity in Temporal's histories.
    pub identity: String,
    /// The workflow type that runs graphs.
    pub graph_workflow_type: String,
    /// The task queue of the workers that run graphs.
    pub graph_task_queue: String,
    /// Timeout of one connection attempt, the first response included.
    pub connect_timeout: Duration,
    /// Timeout of one call on an open connection.
    pub call_timeout: Duration,
}

impl Default for TemporalOptions {
    fn default() -> Self {
        Self {
            address: "127.0.0.1:7233".to_owned(),
            namespace: "default".to_owned(),
            tls: None,
            api_key: None,
            identity: "leasehold".to_owned(),
            graph_workflow_type: "LeaseholdGraph".to_owned(),
            graph_task_queue: "leasehold".to_owned(),
            connect_timeout: Duration::from_secs(5),
            call_timeout: Duration::from_secs(10),
        }
    }
}

/// TLS to Temporal. The default trusts the system's root certificates and sends no client certificate.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct TemporalTls {
    /// The certificate authority of the server, as PEM. Default: the system's root certificates.
    #[serde(with = "optional_pem")]
    pub ca: Option<Vec<u8>>,
    /// The expected name in the server's certificate. Default: the address's host.
    pub domain: Option<String>,
    /// The client certificate, for mutual TLS.
    pub client: Option<ClientCertificate>,
}

/// A client certificate for mutual TLS.
#[derive(Clone, Deserialize, Serialize)]
pub struct ClientCertificate {
    /// The certificate chain, as PEM.
    #[serde(with = "pem")]
    pub certificate: Vec<u8>,
    /// Its private key, as PEM.
    #[serde(with = "pem")]
    pub key: Vec<u8>,
}

impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientCertificate(..)")
    }
}

/// A secret that `Debug` does not print.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct ApiKey(String);

impl From<String> for ApiKey {
    fn from(key: String) -> Self {
        Self(key)
    }
}

impl ApiKey {
    /// Returns the secret.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(..)")
    }
}

/// Why [`TemporalOptions`] are invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidTemporalOptions {
    /// The address is neither `host:port` nor an HTTP URL.
    #[error("invalid Temporal address `{0}`: must be host:port or an http(s) URL")]
    Address(String),
    /// TLS is configured, but the address is plain http.
    #[error(
        "invalid Temporal address `{0}`: it is http, but TLS is configured; use https or host:port"
    )]
    PlainTextWithTls(String),
    /// A required option is empty.
    #[error("invalid Temporal options: the {0} must not be empty")]
    Empty(&'static str),
    /// The key is not a valid header value.
    #[error("invalid Temporal API key: it must consist of visible ASCII characters")]
    ApiKey,
}

impl TemporalOptions {
    pub(crate) fn validate(&self) -> Result<(), InvalidTemporalOptions> {
        let texts = [
            ("namespace", &self.namespace),
            ("workflow type of graphs", &self.graph_workflow_type),
            ("task queue of graphs", &self.graph_task_queue),
        ];
        if let Some((what, _)) = texts.iter().find(|(_, text)| text.trim().is_empty()) {
            return Err(InvalidTemporalOptions::Empty(what));
        }
        match &self.api_key {
            Some(ApiKey(key)) if !key.bytes().all(|byte| byte.is_ascii_graphic()) => {
                Err(InvalidTemporalOptions::ApiKey)
            }
            Some(ApiKey(key)) if key.is_empty() => Err(InvalidTemporalOptions::Empty("API key")),
            _ => Ok(()),
        }
    }

    /// Returns the connection target.
    pub(crate) fn connection(&self) -> Result<Target, InvalidTemporalOptions> {
        let uri = self.uri()?;
        let tls = (uri.scheme_str() == Some("https")).then(|| self.tls.clone().unwrap_or_default());
        let bearer = |ApiKey(key): &ApiKey| MetadataValue::try_from(format!("Bearer {key}"));
        let authorization = self.api_key.as_ref().map(bearer).transpose();
        let authorization = authorization.map_err(|_| InvalidTemporalOptions::ApiKey)?;
        Ok(Target {
            uri,
            tls,
            authorization,
        })
    }

    /// Returns the address with its scheme, `https` for TLS.
    ///
    /// # Errors
    /// Fails if the address is invalid, or is `http` although TLS is configured.
    pub fn url(&self) -> Result<String, InvalidTemporalOptions> {
        self.uri().map(|uri| uri.to_string())
    }

    fn uri(&self) -> Result<Uri, InvalidTemporalOptions> {
        let invalid = || InvalidTemporalOptions::Address(self.address.clone());
        let with_scheme = if self.address.contains("://") {
            self.address.clone()
        } else if self.tls.is_some() || self.api_key.is_some() {
            format!("https://{}", self.address)
        } else {
            format!("http://{}", self.address)
        };
        let uri: Uri = with_scheme.parse().map_err(|_| invalid())?;
        match uri.scheme_str() {
            Some("http") if self.tls.is_some() => Err(InvalidTemporalOptions::PlainTextWithTls(
                self.address.clone(),
            )),
            Some("http" | "https") if uri.host().is_some_and(|host| !host.is_empty()) => Ok(uri),
            _ => Err(invalid()),
        }
    }
}

/// The target of a connection.
pub(crate) struct Target {
    uri: Uri,
    tls: Option<TemporalTls>,
    pub(crate) authorization: Option<MetadataValue<Ascii>>,
}

impl Target {
    /// Builds the endpoint. Fails if the system's root certificates are needed and cannot be read.
    pub(crate) fn endpoint(
        &self,
        connect_timeout: Duration,
    ) -> Result<Endpoint, tonic::transport::Error> {
        let endpoint = Endpoint::from(self.uri.clone())
            .connect_timeout(connect_timeout)
            .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
            .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
            .keep_alive_while_idle(true);
        let Some(tls) = &self.tls else {
            return Ok(endpoint);
        };
        let endpoint = match tls.domain.as_deref().map(origin) {
            // Proxies that route by name expect the certificate's name.
            Some(Some(origin)) => endpoint.origin(origin),
            _ => endpoint,
        };
        endpoint.tls_config(client_tls(tls))
    }
}

fn origin(domain: &str) -> Option<Uri> {
    format!("https://{domain}").parse().ok()
}

fn client_tls(tls: &TemporalTls) -> ClientTlsConfig {
    let config = ClientTlsConfig::new();
    let config = match &tls.ca {
        Some(ca) => config.ca_certificate(Certificate::from_pem(ca)),
        None => config.with_native_roots(),
    };
    let config = match &tls.client {
        Some(client) => config.identity(Identity::from_pem(&client.certificate, &client.key)),
        None => config,
    };
    match &tls.domain {
        Some(domain) => config.domain_name(domain),
        None => config,
    }
}

/// Serializes PEM as text.
mod pem {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(pem: &[u8], to: S) -> Result<S::Ok, S::Error> {
        String::from_utf8_lossy(pem).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        String::deserialize(from).map(String::into_bytes)
    }
}

mod optional_pem {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        pem: &Option<Vec<u8>>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let text = pem.as_deref().map(String::from_utf8_lossy);
        text.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Vec<u8>>, D::Error> {
        Ok(Option::<String>::deserialize(from)?.map(String::into_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str) -> TemporalOptions {
        TemporalOptions {
            address: address.to_owned(),
            ..TemporalOptions::default()
        }
    }

    #[test]
    fn bare_address_uses_tls_only_with_tls_options_or_key() {
        let plain = at("temporal:7233").connection().unwrap();
        assert_eq!(plain.uri, "http://temporal:7233/");
        assert!(plain.tls.is_none());
        for options in [
            TemporalOptions {
                tls: Some(TemporalTls::default()),
                ..at("temporal:7233")
            },
            TemporalOptions {
                api_key: Some("key".to_owned().into()),
                ..at("temporal:7233")
            },
            at("https://temporal:7233"),
        ] {
            let encrypted = options.connection().unwrap();
            assert_eq!(encrypted.uri, "https://temporal:7233/");
            assert!(encrypted.tls.is_some());
        }
    }

    #[test]
    fn http_address_with_tls_options_is_rejected() {
        let options = TemporalOptions {
            tls: Some(TemporalTls::default()),
            ..at("http://temporal:7233")
        };
        assert_eq!(
            options.connection().err().unwrap(),
            InvalidTemporalOptions::PlainTextWithTls("http://temporal:7233".to_owned())
        );
    }

    #[test]
    fn options_round_trip_through_json() {
        let options = TemporalOptions {
            tls: Some(TemporalTls {
                ca: Some(b"ca".to_vec()),
                domain: Some("temporal.example".to_owned()),
                client: Some(ClientCertificate {
                    certificate: b"certificate".to_vec(),
                    key: b"key".to_vec(),
                }),
            }),
            api_key: Some("secret".to_owned().into()),
            ..at("10.0.0.1:7233")
        };
        let text = serde_json::to_string(&options).unwrap();
        let read: TemporalOptions = serde_json::from_str(&text).unwrap();
        let tls = read.tls.unwrap();
        assert_eq!(tls.ca.as_deref(), Some(&b"ca"[..]));
        assert_eq!(tls.domain.as_deref(), Some("temporal.example"));
        let client = tls.client.unwrap();
        assert_eq!(client.certificate, b"certificate");
        assert_eq!(client.key, b"key");
        assert_eq!(read.api_key, Some("secret".to_owned().into()));
        assert_eq!(read.address, options.address);
        assert_eq!(read.call_timeout, options.call_timeout);
    }

    #[test]
    fn invalid_options_are_rejected() {
        for address in ["", "ftp://temporal", "http://", "temporal port"] {
            assert!(at(address).connection().is_err(), "{address}");
        }
        let nameless = TemporalOptions {
            namespace: " ".to_owned(),
            ..at("temporal:7233")
        };
        assert_eq!(
            nameless.validate(),
            Err(InvalidTemporalOptions::Empty("namespace"))
        );
        let broken_key = TemporalOptions {
            api_key: Some("two\nlines".to_owned().into()),
            ..at("temporal:7233")
        };
        assert_eq!(broken_key.validate(), Err(InvalidTemporalOptions::ApiKey));
    }

    #[test]
    fn debug_output_hides_secrets() {
        let options = TemporalOptions {
            api_key: Some("hunter2".to_owned().into()),
            tls: Some(TemporalTls {
                client: Some(ClientCertificate {
                    certificate: b"hunter2".to_vec(),
                    key: b"hunter2".to_vec(),
                }),
                ..TemporalTls::default()
            }),
            ..at("temporal:7233")
        };
        let shown = format!("{options:?}");
        assert!(
            !shown.contains("hunter2") && !shown.contains("104, 117"),
            "{shown}"
        );
    }
}
