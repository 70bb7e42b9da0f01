//! TLS to a real PostgreSQL that accepts only TLS.
#![allow(clippy::unwrap_used)]

use leasehold_store::SchemaStore;
use leasehold_store_postgres::{PostgresOptions, PostgresStore};
use leasehold_testkit::{Cluster, fresh_cluster};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

/// A CA certificate in PEM, and a server certificate that it signed, with its key.
struct Certificates {
    ca: String,
    certificate: String,
    key: String,
}

impl Certificates {
    fn of(name: &str) -> Self {
        let mut ca = CertificateParams::new([]).unwrap();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let its_key = KeyPair::generate().unwrap();
        let signed = ca.self_signed(&its_key).unwrap();
        let issuer = Issuer::new(ca, its_key);
        let key = KeyPair::generate().unwrap();
        let server = CertificateParams::new([name.to_owned()]).unwrap();
        Self {
            ca: signed.pem(),
            certificate: server.signed_by(&key, &issuer).unwrap().pem(),
            key: key.serialize_pem(),
        }
    }
}

/// Starts a server that accepts only TLS.
fn tls_only_cluster(certificates: &Certificates) -> Cluster {
    let mut cluster = fresh_cluster(&[("fsync", "off")]);
    cluster.stop().unwrap();
    let data = cluster.directory().join("data");
    write_private(&data, "server.crt", &certificates.certificate);
    write_private(&data, "server.key", &certificates.key);
    write_private(&data, "pg_hba.conf", "hostssl all all 127.0.0.1/32 trust\n");
    let settings = data.join("postgresql.conf");
    let usual = fs::read_to_string(&settings).unwrap();
    write_private(&data, "postgresql.conf", &format!("{usual}\nssl = on\n"));
    cluster.start_again().unwrap();
    cluster
}

/// Writes a file that only the server's account can read.
fn write_private(data: &Path, name: &str, text: &str) {
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
async fn server_certificate_must_match_ca_and_host_name() {
    let certificates = Certificates::of("127.0.0.1");
    let cluster = tokio::task::block_in_place(|| tls_only_cluster(&certificates));
    let trusting = |url: String| PostgresOptions {
        tls_ca: Some(certificates.ca.clone().into()),
        ..PostgresOptions::new(url)
    };

    migrated(&trusting(cluster.url())).await.unwrap();
    let full = format!("{}?sslmode=verify-full", cluster.url());
    migrated(&trusting(full)).await.unwrap();

    let untrusting = PostgresOptions::new(format!("{}?sslmode=verify-ca", cluster.url()));
    let refused = migrated(&untrusting).await.unwrap_err();
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

/// Each value of `sslmode` with and without `sslrootcert`, as libpq's documentation describes them.
#[tokio::test(flavor = "multi_thread")]
async fn sslmode_and_sslrootcert_mean_what_libpq_means() {
    let certificates = Certificates::of("127.0.0.1");
    let cluster = tokio::task::block_in_place(|| tls_only_cluster(&certificates));
    let directory = leasehold_testkit::temp_dir();
    let file = |name: &str, text: &str| {
        let file = directory.path().join(name);
        fs::write(&file, text).unwrap();
        file.display().to_string().replace('/', "%2F")
    };
    let ca = file("ca.pem", &certificates.ca);
    let other_ca = file("other.pem", &Certificates::of("127.0.0.1").ca);
    let (here, elsewhere) = (
        cluster.url(),
        cluster.url().replace("127.0.0.1", "localhost"),
    );
    let accepted = "";
    let cases = [
        // Debian's default certificate is signed by itself: these modes accept it.
        (&here, "", accepted),
        (&here, "sslmode=prefer", accepted),
        (&here, "sslmode=allow", accepted),
        (&here, "sslmode=require", accepted),
        (&here, "sslmode=disable", "no encryption"),
        (&here, "sslmode=verify-ca", "UnknownIssuer"),
        (&here, "sslmode=verify-full", "UnknownIssuer"),
        (&here, "sslrootcert=system", "UnknownIssuer"),
        (
            &here,
            &format!("sslmode=require&sslrootcert={ca}"),
            accepted,
        ),
        (
            &here,
            &format!("sslmode=require&sslrootcert={other_ca}"),
            "invalid peer certificate",
        ),
        (
            &here,
            &format!("sslmode=verify-full&sslrootcert={ca}"),
            accepted,
        ),
        (
            &elsewhere,
            &format!("sslmode=verify-ca&sslrootcert={ca}"),
            accepted,
        ),
        (
            &elsewhere,
            &format!("sslmode=verify-full&sslrootcert={ca}"),
            "NotValidForName",
        ),
    ];
    for (url, parameters, expected) in cases {
        let outcome = migrated(&PostgresOptions::new(format!("{url}?{parameters}"))).await;
        let shown = outcome.map_err(|error| format!("{error} {:?}", error.source));
        match expected {
            "" => assert_eq!(shown, Ok(()), "{parameters}"),
            expected => assert!(
                shown.clone().unwrap_err().contains(expected),
                "{parameters}: {shown:?}"
            ),
        }
    }
}

/// A certificate that signs itself, like Debian's: `sslrootcert` names the certificate itself.
#[tokio::test(flavor = "multi_thread")]
async fn self_signed_certificate_can_be_its_own_root() {
    for is_ca in [IsCa::NoCa, IsCa::Ca(BasicConstraints::Unconstrained)] {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        parameters.is_ca = is_ca;
        let certificate = parameters.self_signed(&key).unwrap().pem();
        let certificates = Certificates {
            ca: certificate.clone(),
            certificate,
            key: key.serialize_pem(),
        };
        let cluster = tokio::task::block_in_place(|| tls_only_cluster(&certificates));
        let trusting = |url: String, mode: &str| PostgresOptions {
            tls_ca: Some(certificates.ca.clone().into()),
            ..PostgresOptions::new(format!("{url}?sslmode={mode}"))
        };
        let elsewhere = cluster.url().replace("127.0.0.1", "localhost");
        for mode in ["verify-ca", "verify-full"] {
            migrated(&trusting(cluster.url(), mode)).await.unwrap();
        }
        migrated(&trusting(elsewhere.clone(), "verify-ca"))
            .await
            .unwrap();
        let refused = migrated(&trusting(elsewhere, "verify-full"))
            .await
            .unwrap_err();
        let shown = format!("{refused} {:?}", refused.source);
        assert!(shown.contains("NotValidForName"), "{shown}");
    }
}

#[tokio::test]
async fn invalid_tls_options_fail_before_connecting() {
    let url = "postgres://me@127.0.0.1:1/db";
    let with = |url: &str, ca: &str| PostgresOptions {
        tls_ca: Some(ca.into()),
        ..PostgresOptions::new(url)
    };
    let ca = Certificates::of("127.0.0.1").ca;
    let cases = [
        (with(url, "no certificate"), "contains no PEM certificate"),
        (
            with(&format!("{url}?sslmode=disable"), &ca),
            "sslmode=disable",
        ),
        (
            with(&format!("{url}?sslrootcert=%2Fca.pem"), &ca),
            "set twice",
        ),
        (
            PostgresOptions::new(format!("{url}?sslrootcert=%2Fnowhere%2Fca.pem")),
            "cannot read /nowhere/ca.pem",
        ),
        (
            PostgresOptions::new(format!("{url}?sslrootcert=system&sslmode=require")),
            "requires sslmode=verify-full",
        ),
        (
            PostgresOptions::new(format!("{url}?sslmode=sometimes")),
            "sslmode must be",
        ),
    ];
    for (options, expected) in cases {
        let error = migrated(&options).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
