//! The client's process: sends or fetches one blob, and says what that took.

use crate::{measured, peers};
use std::path::PathBuf;
use tessera_protocol::{BlobHash, Fingerprint, Hello};
use tessera_transport::blob::Target;
use tessera_transport::{Address, FarmClient, Identity};

/// First argument of this program as a client.
pub(crate) const WORD: &str = "client-of-the-transfer-bench";

/// What a client process says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    pub(crate) secs: f64,
    /// Processor seconds of the transfer.
    pub(crate) cpu: f64,
    pub(crate) peak_bytes: u64,
}

impl Report {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let mut next = || words.next();
        let (secs, cpu) = (next()?.parse().ok()?, next()?.parse().ok()?);
        Some(Self { secs, cpu, peak_bytes: next()?.parse().ok()? })
    }
}

/// The way (`put` or `get`), the coordinator's address, the blob's hash, the folder of the
/// identity, and the file to send.
pub(crate) struct Arguments {
    way: String,
    address: Address,
    hash: BlobHash,
    identity: PathBuf,
    source: PathBuf,
}

/// The arguments, if this program is to be a client.
pub(crate) fn arguments() -> Option<Arguments> {
    let mut words = std::env::args_os().skip(1);
    words.next().filter(|word| word == WORD)?;
    let mut text = || words.next()?.into_string().ok();
    let (way, address, hash) = (text()?, text()?.parse().ok()?, peers::hash_of(&text()?));
    let (identity, source) = (words.next()?.into(), words.next()?.into());
    Some(Arguments { way, address, hash, identity, source })
}

/// Sends or fetches the blob, and prints a report.
pub(crate) fn run(arguments: &Arguments) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let identity = Identity::load(&arguments.identity).expect("the admin's identity");
    let hello = Hello::ours(Fingerprint([0; 32]));
    let client = runtime
        .block_on(FarmClient::connect(&arguments.address, &identity, &hello))
        .expect("a connection");
    let length = std::fs::metadata(&arguments.source).expect("a file").len();
    let (hash, source) = (arguments.hash, &arguments.source);
    let target = source.with_file_name("target");
    let (cost, ()) = measured(|| {
        runtime.block_on(async {
            if arguments.way == "put" {
                let sent = client.put_blob((hash, length), source, &mut |_, _| {}).await;
                assert_eq!(sent.expect("an upload"), length);
            } else {
                let into = Target::replacing(&target);
                let got = client.get_blob(hash, length, into, &mut |_, _| {}).await;
                assert_eq!(got.expect("a download"), length);
            }
        });
    });
    runtime.block_on(client.close());
    println!("{} {} {}", cost.secs, cost.cpu, peers::peak_bytes());
}
