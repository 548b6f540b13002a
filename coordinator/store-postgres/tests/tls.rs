//! TLS and passwords: the server's certificate is checked, and a wrong password is refused.

use crate::support::{Farm, record, records};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tessera_store_postgres::{Passwords, PostgresPlace, StoreAddress};
use tessera_support::postgres::Postgres;
use tessera_transport::files;

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn secret(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    files::write_atomically(&path, text.as_bytes(), files::Access::Secret).unwrap();
    path
}

/// Serves TLS with a certificate of an authority, and asks one user for a password.
fn protect(postgres: &Postgres, authority: &CertifiedIssuer<'static, KeyPair>) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    postgres.write("server.crt", &certificate.pem());
    postgres.write("server.key", &key.serialize_pem());
    let rules = "hostssl all ada 127.0.0.1/32 scram-sha-256\nhost all tessera all trust\n";
    postgres.write("pg_hba.conf", rules);
    postgres.sql("CREATE ROLE ada LOGIN PASSWORD 'hush'");
    postgres.sql("GRANT CREATE ON DATABASE postgres TO ada");
    postgres.sql("ALTER SYSTEM SET ssl = on");
    postgres.sql("SELECT pg_reload_conf()");
    let since = Instant::now();
    while postgres.sql("SHOW ssl") != "on" {
        assert!(since.elapsed() < Duration::from_secs(30), "{}", postgres.log());
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn the_certificate_and_the_password_are_checked() {
    let Some(postgres) = Postgres::start("the_certificate_and_the_password_are_checked") else {
        return;
    };
    let (ours, others) = (authority(), authority());
    protect(&postgres, &ours);
    let folder = tempfile::tempdir().unwrap();
    let root = secret(folder.path(), "root.pem", &ours.pem());
    let other = secret(folder.path(), "other.pem", &others.pem());
    let right = secret(folder.path(), "right", "hush\n");
    let wrong = secret(folder.path(), "wrong", "loud\n");
    let place = |options: String, file: &Path| {
        let port = postgres.port();
        let text = format!("postgres://ada@127.0.0.1:{port}/postgres?term=2&{options}");
        let mut address = StoreAddress::parse(&text).unwrap();
        let passwords = Passwords { file: Some(file.to_owned()), ..Passwords::default() };
        passwords.add_to(&mut address).unwrap();
        PostgresPlace::new(address, "tls".into(), true)
    };
    let refused = |place: PostgresPlace, why: &str| {
        let error = Farm::new(place).try_open().err().unwrap();
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(cause.contains(why) && !cause.contains("loud"), "{error}: {cause}");
    };
    let by = |path: &Path| format!("sslrootcert={}", path.display());
    refused(place("sslmode=verify-full".into(), &right), "certificate");
    refused(place(by(&other), &right), "certificate");
    refused(place(by(&root), &wrong), "password authentication failed");
    refused(place("sslmode=disable".into(), &right), "no encryption");
    let checked = place(by(&root), &right);
    let shown = format!("{checked:?}");
    assert!(!shown.contains("hush") && !shown.contains("root.pem"), "{shown}");
    let farm = Farm { root: tempfile::tempdir().unwrap(), place: std::sync::Arc::new(checked) };
    farm.commit(&records(1..=1));
    assert_eq!(farm.load().unwrap().records, [record(1)]);
}
