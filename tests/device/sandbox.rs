//! A worker has no network and no keys: it tries, and cannot.

use crate::device::bench::Bench;
use std::net::{Ipv4Addr, TcpListener};
use tessera_node::device::cuda::try_forbidden;
use tessera_node::worker::FileConfinement;

#[test]
fn a_worker_reaches_no_port_no_key_and_no_program() {
    let bench = Bench::with(|_| {});
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let key = bench.config.data.join("identity/key.pem");
    std::fs::create_dir_all(key.parent().unwrap()).unwrap();
    std::fs::write(&key, "secret").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (report, tried) = try_forbidden(&bench.config, port, &key).unwrap();
    assert!(report.wanted && report.no_network, "{report}");
    for (what, refused) in [("connect", &tried.connect), ("bind", &tried.bind), ("run", &tried.run)]
    {
        assert!(refused.is_some(), "a worker could {what}: {tried:?}");
    }
    assert!(tried.connect.unwrap_or_default().contains("ermission denied"));
    if report.files == FileConfinement::None {
        eprintln!("NOT RUN: a worker cannot read the node's key (this kernel has no Landlock)");
        return;
    }
    assert!(tried.read.is_some() && tried.write.is_some(), "{report}");
}

#[test]
fn a_worker_ends_with_its_node() {
    // The thread that starts a worker stands for its node: the kernel ends the one with the other.
    let bench = Bench::with(|_| {});
    let opened = bench.open();
    assert!(bench.rack.counts(0).used_bytes > 0);
    drop(opened);
    crate::device::bench::wait_for("its end", || bench.rack.counts(0).used_bytes == 0);
}
