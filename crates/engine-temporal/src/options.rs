//! How to reach a Temporal namespace, as a user configures it. Reads no file and no environment, and opens no connection.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;
use thiserror::Error;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity, Uri};

/// How often a connection is tested that carries nothing, and how long the answer may take.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(15);

/// How to reach Temporal, and what graphs run as there.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct TemporalOptions {
    /// The frontend: `host:port`, or a URL that begins with `http://` or `https://`.
    ///
    /// A bare `host:port` means TLS if [`tls`](Self::tls) or [`api_key`](Self::api_key) is given, and plain text if not.
    pub address: String,
    /// The namespace everything is started in.
    pub namespace: String,
    /// How to speak TLS; an `https://` address without it means TLS with the system's roots.
    pub tls: Option<Tls>,
    /// Sent as `authorization: Bearer …` with every call, as Temporal Cloud wants it.
    pub api_key: Option<ApiKey>,
    /// Who we are in Temporal's histories.
    pub identity: String,
    /// The workflow type that runs graphs.
    pub graph_workflow_type: String,
    /// The task queue of the workers that run graphs.
    pub graph_task_queue: String,
    /// How long one attempt to connect may take, the first answer included.
    pub connect_timeout: Duration,
    /// How long one call may take once there is a connection.
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

/// TLS to Temporal. The default trusts the system's roots and shows no certificate.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Tls {
    /// The authority that signed the server's certificate, as PEM; the system's roots if none.
    #[serde(with = "optional_pem")]
    pub ca: Option<Vec<u8>>,
    /// The name the server's certificate must carry; the address's host if none.
    pub domain: Option<String>,
    /// What we show the server, where it asks for it.
    pub client: Option<ClientCertificate>,
}

/// A certificate to show the server.
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

/// A secret that does not show itself in logs.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct ApiKey(String);

impl From<String> for ApiKey {
    fn from(key: String) -> Self {
        Self(key)
    }
}

impl ApiKey {
    /// The key itself.
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

/// Why options cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidOptions {
    /// The address is neither `host:port` nor an HTTP URL.
    #[error("the Temporal address `{0}` is neither host:port nor an http(s) URL")]
    Address(String),
    /// TLS was asked for with an address that says otherwise.
    #[error(
        "the Temporal address `{0}` says http, but TLS is configured: write https or host:port"
    )]
    PlainTextWithTls(String),
    /// Something that must not be empty is.
    #[error("the Temporal {0} must not be empty")]
    Empty(&'static str),
    /// The key holds what no header can carry.
    #[error("the Temporal API key must consist of visible ASCII characters")]
    ApiKey,
}

impl TemporalOptions {
    pub(crate) fn validate(&self) -> Result<(), InvalidOptions> {
        let texts = [
            ("namespace", &self.namespace),
            ("workflow type of graphs", &self.graph_workflow_type),
            ("task queue of graphs", &self.graph_task_queue),
        ];
        if let Some((what, _)) = texts.iter().find(|(_, text)| text.trim().is_empty()) {
            return Err(InvalidOptions::Empty(what));
        }
        match &self.api_key {
            Some(ApiKey(key)) if !key.bytes().all(|byte| byte.is_ascii_graphic()) => {
                Err(InvalidOptions::ApiKey)
            }
            Some(ApiKey(key)) if key.is_empty() => Err(InvalidOptions::Empty("API key")),
            _ => Ok(()),
        }
    }

    /// Where to connect to, and what to say there.
    pub(crate) fn connection(&self) -> Result<Target, InvalidOptions> {
        let uri = self.uri()?;
        let tls = (uri.scheme_str() == Some("https")).then(|| self.tls.clone().unwrap_or_default());
        let bearer = |ApiKey(key): &ApiKey| MetadataValue::try_from(format!("Bearer {key}"));
        let authorization = self.api_key.as_ref().map(bearer).transpose();
        let authorization = authorization.map_err(|_| InvalidOptions::ApiKey)?;
        Ok(Target {
            uri,
            tls,
            authorization,
        })
    }

    /// The address with its scheme, which says whether TLS is spoken.
    ///
    /// # Errors
    /// If the address is no address, or says `http` where TLS is configured.
    pub fn url(&self) -> Result<String, InvalidOptions> {
        self.uri().map(|uri| uri.to_string())
    }

    fn uri(&self) -> Result<Uri, InvalidOptions> {
        let invalid = || InvalidOptions::Address(self.address.clone());
        let with_scheme = if self.address.contains("://") {
            self.address.clone()
        } else if self.tls.is_some() || self.api_key.is_some() {
            format!("https://{}", self.address)
        } else {
            format!("http://{}", self.address)
        };
        let uri: Uri = with_scheme.parse().map_err(|_| invalid())?;
        match uri.scheme_str() {
            Some("http") if self.tls.is_some() => {
                Err(InvalidOptions::PlainTextWithTls(self.address.clone()))
            }
            Some("http" | "https") if uri.host().is_some_and(|host| !host.is_empty()) => Ok(uri),
            _ => Err(invalid()),
        }
    }
}

/// What a connection is made with.
pub(crate) struct Target {
    uri: Uri,
    tls: Option<Tls>,
    pub(crate) authorization: Option<MetadataValue<Ascii>>,
}

impl Target {
    /// Reads the system's certificates if they are needed, so it can fail.
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
            // Where calls are routed by name, the name is the certificate's.
            Some(Some(origin)) => endpoint.origin(origin),
            _ => endpoint,
        };
        endpoint.tls_config(client_tls(tls))
    }
}

fn origin(domain: &str) -> Option<Uri> {
    format!("https://{domain}").parse().ok()
}

fn client_tls(tls: &Tls) -> ClientTlsConfig {
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

/// PEM as the text that it is.
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
    fn a_bare_address_is_plain_text_unless_there_is_something_to_protect() {
        let plain = at("temporal:7233").connection().unwrap();
        assert_eq!(plain.uri, "http://temporal:7233/");
        assert!(plain.tls.is_none());
        for options in [
            TemporalOptions {
                tls: Some(Tls::default()),
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
    fn tls_is_never_dropped_in_silence() {
        let options = TemporalOptions {
            tls: Some(Tls::default()),
            ..at("http://temporal:7233")
        };
        assert_eq!(
            options.connection().err().unwrap(),
            InvalidOptions::PlainTextWithTls("http://temporal:7233".to_owned())
        );
    }

    #[test]
    fn options_survive_the_way_to_another_program() {
        let options = TemporalOptions {
            tls: Some(Tls {
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
    fn nonsense_is_refused() {
        for address in ["", "ftp://temporal", "http://", "temporal port"] {
            assert!(at(address).connection().is_err(), "{address}");
        }
        let nameless = TemporalOptions {
            namespace: " ".to_owned(),
            ..at("temporal:7233")
        };
        assert_eq!(nameless.validate(), Err(InvalidOptions::Empty("namespace")));
        let broken_key = TemporalOptions {
            api_key: Some("two\nlines".to_owned().into()),
            ..at("temporal:7233")
        };
        assert_eq!(broken_key.validate(), Err(InvalidOptions::ApiKey));
    }

    #[test]
    fn secrets_do_not_show() {
        let options = TemporalOptions {
            api_key: Some("hunter2".to_owned().into()),
            tls: Some(Tls {
                client: Some(ClientCertificate {
                    certificate: b"hunter2".to_vec(),
                    key: b"hunter2".to_vec(),
                }),
                ..Tls::default()
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
