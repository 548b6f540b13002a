//! A worker tries what its sandbox forbids, so that tests and `doctor` can check it. Does no harm
//! if it succeeds.

use super::message::Report;
use std::io::Error;
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;

/// Tries to connect to a port of this machine, to open a socket, to read a file, to write beside
/// it, and to run a program.
pub(super) fn attempt(port: u16, file: &Path) -> Report {
    let text = |result: Result<(), Error>| result.err().map(|error| error.to_string());
    let beside = file.with_extension("written-by-worker");
    let written = std::fs::write(&beside, b"x");
    if written.is_ok() {
        // The file was only a test.
        let _ = std::fs::remove_file(&beside);
    }
    let bound = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map(drop);
    Report::Tried {
        connect: text(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).map(drop)),
        bind: text(bound.and_then(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map(drop))),
        read: text(std::fs::read(file).map(drop)),
        write: text(written),
        run: text(std::process::Command::new("/bin/true").status().map(drop)),
    }
}
