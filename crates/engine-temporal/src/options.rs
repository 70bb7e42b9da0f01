//! How to reach a Temporal namespace, as a user configures it. Reads no file and no environment, and opens no connection.

use std::fmt;
use std::time::Duration;
use temporalio_client::{ClientTlsOptions, ConnectionOptions, TlsOptions, Url};
use thiserror::Error;

/// How to reach Temporal, and what graphs run as there.
#[derive(Clone, Debug)]
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
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// The authority that signed the server's certificate, as PEM; the system's roots if none.
    pub ca: Option<Vec<u8>>,
    /// The name the server's certificate must carry; the address's host if none.
    pub domain: Option<String>,
    /// What we show the server, where it asks for it.
    pub client: Option<ClientCertificate>,
}

/// A certificate to show the server.
#[derive(Clone)]
pub struct ClientCertificate {
    /// The certificate chain, as PEM.
    pub certificate: Vec<u8>,
    /// Its private key, as PEM.
    pub key: Vec<u8>,
}

impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientCertificate(..)")
    }
}

/// A secret that does not show itself in logs.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl From<String> for ApiKey {
    fn from(key: String) -> Self {
        Self(key)
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

    /// What the SDK connects with.
    pub(crate) fn connection(&self) -> Result<ConnectionOptions, InvalidOptions> {
        let target = self.target()?;
        let tls = (target.scheme() == "https").then(|| self.sdk_tls());
        Ok(ConnectionOptions::new(target)
            .identity(&self.identity)
            .connect_timeout(self.connect_timeout)
            .maybe_tls_options(tls)
            .maybe_api_key(self.api_key.as_ref().map(|key| key.0.clone()))
            // The balanced channel waits without end while no address answers, and then nobody knows whether a start was
            // sent. A plain channel looks the name up whenever it connects, and says so when it cannot.
            .dns_load_balancing(None)
            .build())
    }

    /// The SDK speaks plain text to an `http` address even with TLS options, so the scheme must be right.
    fn target(&self) -> Result<Url, InvalidOptions> {
        let invalid = || InvalidOptions::Address(self.address.clone());
        let with_scheme = if self.address.contains("://") {
            self.address.clone()
        } else if self.tls.is_some() || self.api_key.is_some() {
            format!("https://{}", self.address)
        } else {
            format!("http://{}", self.address)
        };
        let url = Url::parse(&with_scheme).map_err(|_| invalid())?;
        match url.scheme() {
            "http" if self.tls.is_some() => {
                Err(InvalidOptions::PlainTextWithTls(self.address.clone()))
            }
            "http" | "https" if url.has_host() => Ok(url),
            _ => Err(invalid()),
        }
    }

    fn sdk_tls(&self) -> TlsOptions {
        let tls = self.tls.clone().unwrap_or_default();
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
        assert_eq!(plain.target.as_str(), "http://temporal:7233/");
        assert!(plain.tls_options.is_none());
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
            assert_eq!(encrypted.target.as_str(), "https://temporal:7233/");
            assert!(encrypted.tls_options.is_some());
        }
    }

    #[test]
    fn tls_is_never_dropped_in_silence() {
        let options = TemporalOptions {
            tls: Some(Tls::default()),
            ..at("http://temporal:7233")
        };
        assert_eq!(
            options.connection().unwrap_err(),
            InvalidOptions::PlainTextWithTls("http://temporal:7233".to_owned())
        );
    }

    #[test]
    fn a_certificate_reaches_the_sdk() {
        let options = TemporalOptions {
            tls: Some(Tls {
                ca: Some(b"ca".to_vec()),
                domain: Some("temporal.example".to_owned()),
                client: Some(ClientCertificate {
                    certificate: b"certificate".to_vec(),
                    key: b"key".to_vec(),
                }),
            }),
            ..at("10.0.0.1:7233")
        };
        let tls = options.connection().unwrap().tls_options.unwrap();
        assert_eq!(tls.server_root_ca_cert.as_deref(), Some(&b"ca"[..]));
        assert_eq!(tls.domain.as_deref(), Some("temporal.example"));
        let client = tls.client_tls_options.unwrap();
        assert_eq!(client.client_cert, b"certificate");
        assert_eq!(client.client_private_key, b"key");
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
