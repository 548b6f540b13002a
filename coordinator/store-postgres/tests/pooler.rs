//! The store by way of a real pooler of transactions.

use crate::support::{Farm, everything, place_at, records};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tessera_support::farm::skipped;
use tessera_support::postgres::{NOBODY, Postgres, USER};

const PROGRAM: &str = "/usr/sbin/pgbouncer";

/// A pgbouncer that is killed when its owner goes.
struct Pooler {
    process: Child,
    _folder: tempfile::TempDir,
    port: u16,
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Pooler {
    /// Starts one that gives a client's transactions to any of two connections.
    fn start(postgres: &Postgres, more: &str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let folder = tempfile::tempdir().unwrap();
        let [file, users] = ["pgbouncer.ini", "users"].map(|name| folder.path().join(name));
        std::fs::write(&users, format!("\"{USER}\" \"\"\n")).unwrap();
        let text = format!(
            "[databases]\npostgres = host=127.0.0.1 port={}\n[pgbouncer]\n\
             listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
             auth_type = trust\nauth_file = {}\npool_mode = transaction\n\
             default_pool_size = 2\nserver_round_robin = 1\n{more}",
            postgres.port(),
            users.display(),
        );
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new(PROGRAM);
        if rustix::process::geteuid().is_root() {
            let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(folder.path(), open).unwrap();
            command.uid(NOBODY).gid(NOBODY);
        }
        command.arg("-q").arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().unwrap();
        let since = Instant::now();
        while std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            assert!(since.elapsed() < Duration::from_secs(30), "pgbouncer does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { process, _folder: folder, port }
    }
}

#[test]
fn a_pooler_of_transactions_may_stand_between() {
    let what = "a_pooler_of_transactions_may_stand_between";
    if !std::path::Path::new(PROGRAM).exists() {
        return skipped(&format!("{what}: pgbouncer is not installed"));
    }
    let Some(postgres) = Postgres::start(what) else { return };
    // One refuses the option of the connection, the other one ignores it.
    for (round, more) in ["", "ignore_startup_parameters = options\n"].into_iter().enumerate() {
        let pooler = Pooler::start(&postgres, more);
        let farm = Farm::new(place_at(&postgres.address_at(pooler.port), "pooled"));
        let mut store = farm.open();
        let mut changes = everything();
        changes.snapshot = Some((100, vec![1; 9 << 20]));
        store.commit(&changes).unwrap();
        let until = Instant::now() + Duration::from_secs(3);
        let mut next = 301;
        while Instant::now() < until {
            store.commit(&records(next..next + 2)).unwrap();
            next += 2;
        }
        assert_eq!(store.load().unwrap().records.len() as u64, next - 101, "round {round}");
        store.close().unwrap();
        postgres.sql("DROP SCHEMA tessera CASCADE");
    }
}
