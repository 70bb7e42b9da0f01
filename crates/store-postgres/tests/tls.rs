//! TLS to a real PostgreSQL that speaks nothing else.
#![allow(clippy::unwrap_used)]

use leasehold_store::SchemaStore;
use leasehold_store_postgres::{PostgresOptions, PostgresStore};
use leasehold_testkit::{Cluster, fresh_cluster};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

/// An authority in PEM, and a certificate with its key that it signed.
struct Papers {
    authority: String,
    certificate: String,
    key: String,
}

impl Papers {
    fn of(name: &str) -> Self {
        let mut authority = CertificateParams::new([]).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let its_key = KeyPair::generate().unwrap();
        let signed = authority.self_signed(&its_key).unwrap();
        let issuer = Issuer::new(authority, its_key);
        let key = KeyPair::generate().unwrap();
        let server = CertificateParams::new([name.to_owned()]).unwrap();
        Self {
            authority: signed.pem(),
            certificate: server.signed_by(&key, &issuer).unwrap().pem(),
            key: key.serialize_pem(),
        }
    }
}

/// A server that lets in only those who speak TLS.
fn strict(papers: &Papers) -> Cluster {
    let mut cluster = fresh_cluster(&[("fsync", "off")]);
    cluster.stop().unwrap();
    let data = cluster.folder().join("data");
    give(&data, "server.crt", &papers.certificate);
    give(&data, "server.key", &papers.key);
    give(&data, "pg_hba.conf", "hostssl all all 127.0.0.1/32 trust\n");
    let settings = data.join("postgresql.conf");
    let usual = fs::read_to_string(&settings).unwrap();
    give(&data, "postgresql.conf", &format!("{usual}\nssl = on\n"));
    cluster.start_again().unwrap();
    cluster
}

/// Writes a file that only the server's own account can read.
fn give(data: &Path, name: &str, text: &str) {
    let owner = fs::metadata(data).unwrap();
    let file = data.join(name);
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    chown(&file, Some(owner.uid()), Some(owner.gid())).unwrap();
}

async fn migrated(options: &PostgresOptions) -> leasehold_store::Result<()> {
    let store = PostgresStore::new(options)?;
    store.schema_migrate().await.map(|_| ())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_believed_only_with_the_authority_and_the_name_that_are_expected() {
    let papers = Papers::of("127.0.0.1");
    let cluster = tokio::task::block_in_place(|| strict(&papers));
    let trusting = |url: String| PostgresOptions {
        tls_ca: Some(papers.authority.clone().into()),
        ..PostgresOptions::new(url)
    };

    migrated(&trusting(cluster.url())).await.unwrap();
    let full = format!("{}?sslmode=verify-full", cluster.url());
    migrated(&trusting(full)).await.unwrap();

    let stranger = PostgresOptions::new(cluster.url());
    let refused = migrated(&stranger).await.unwrap_err();
    let shown = format!("{refused} {:?}", refused.source);
    assert!(shown.contains("UnknownIssuer"), "{shown}");

    let other_name = cluster.url().replace("127.0.0.1", "localhost");
    let refused = migrated(&trusting(other_name)).await.unwrap_err();
    let shown = format!("{refused} {:?}", refused.source);
    assert!(shown.contains("NotValidForName"), "{shown}");

    let plain = format!("{}?sslmode=disable", cluster.url());
    let refused = migrated(&PostgresOptions::new(plain)).await.unwrap_err();
    let shown = format!("{refused} {:?}", refused.source);
    assert!(shown.contains("no encryption"), "{shown}");
}

#[tokio::test]
async fn what_cannot_work_is_refused_before_anybody_is_asked() {
    let url = "postgres://me@127.0.0.1:1/db";
    let with = |url: &str, ca: &str| PostgresOptions {
        tls_ca: Some(ca.into()),
        ..PostgresOptions::new(url)
    };
    let authority = Papers::of("127.0.0.1").authority;
    let cases = [
        (with(url, "no certificate"), "has no certificate in PEM"),
        (
            with(&format!("{url}?sslmode=disable"), &authority),
            "forbids TLS",
        ),
    ];
    for (options, expected) in cases {
        let error = migrated(&options).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
