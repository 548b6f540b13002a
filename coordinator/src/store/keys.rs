//! Keys of what a store has. `r` + sequence (big endian) is a record, `s` + job + frame a spool's
//! extent, `o` + job + frame + number an object of results elsewhere, `t` + hash a token, `i` +
//! number a member, `m` the snapshot, `a` the head of the audit log, and `c` the number of commits.
//! A store elsewhere also has sealed files of the farm (`f` + name) and the entries of the audit
//! log (`l` + number). Does no I/O.

use crate::spool::{SpoolExtent, SpoolKey, StoredResults};
use crate::store::audit_line::AUDIT_ENTRIES_MAX;
use crate::store::{Changes, Loaded, Sequence, TokenHash};
use std::sync::Arc;
use tessera_protocol::{FrameNumber, JobId};
use tessera_transport::TokenRecord;
use tessera_transport::member::MemberRecord;

/// Key of the snapshot.
pub const SNAPSHOT_KEY: &[u8] = b"m";
pub(crate) const COUNT_KEY: &[u8] = b"c";
const AUDIT_HEAD_KEY: &[u8] = b"a";
/// What keys of the audit log's entries begin with. They are read apart from everything else.
pub const AUDIT_ENTRY: u8 = b'l';

/// Meaning of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// A record of the journal, by its sequence number.
    Record(Sequence),
    /// A spool's durable extent on the disk.
    Spool(SpoolKey),
    /// Results in an object elsewhere, by the number of the object in the spool.
    Stored(SpoolKey, u32),
    /// A join token, by the hash of its secret.
    Token(TokenHash),
    /// A member, by the number of its identity.
    Member(u64),
    /// The newest snapshot of the state.
    Snapshot,
    /// The number of commits.
    Count,
    /// The newest entry of the audit log.
    AuditHead,
    /// A sealed file of the farm, by its name.
    File(String),
    /// An entry of the audit log, by its number.
    AuditEntry(u64),
}

pub(crate) fn parse_key(key: &[u8]) -> Option<Key> {
    let (kind, rest) = key.split_first()?;
    match kind {
        b'r' => Some(Key::Record(Sequence::from_be_bytes(rest.try_into().ok()?))),
        b's' => {
            let (job, frame) = rest.split_first_chunk::<16>()?;
            let frame = FrameNumber(u32::from_be_bytes(frame.try_into().ok()?));
            Some(Key::Spool(SpoolKey { job: JobId(uuid::Uuid::from_bytes(*job)), frame }))
        }
        b'o' => {
            let (spool, number) = rest.split_first_chunk::<20>()?;
            let Some(Key::Spool(spool)) = parse_key(&[b"s", &spool[..]].concat()) else {
                return None;
            };
            Some(Key::Stored(spool, u32::from_be_bytes(number.try_into().ok()?)))
        }
        b't' => Some(Key::Token(rest.try_into().ok()?)),
        b'i' => Some(Key::Member(u64::from_be_bytes(rest.try_into().ok()?))),
        b'm' if rest.is_empty() => Some(Key::Snapshot),
        b'c' if rest.is_empty() => Some(Key::Count),
        b'a' if rest.is_empty() => Some(Key::AuditHead),
        b'f' => Some(Key::File(std::str::from_utf8(rest).ok()?.to_owned())),
        &AUDIT_ENTRY => Some(Key::AuditEntry(u64::from_be_bytes(rest.try_into().ok()?))),
        _ => None,
    }
}

/// Returns the key of a record.
pub fn record_key(sequence: Sequence) -> [u8; 9] {
    let mut key = [b'r'; 9];
    key[1..].copy_from_slice(&sequence.to_be_bytes());
    key
}

fn spool_key(spool: SpoolKey) -> [u8; 21] {
    let mut key = [b's'; 21];
    key[1..17].copy_from_slice(spool.job.0.as_bytes());
    key[17..].copy_from_slice(&spool.frame.0.to_be_bytes());
    key
}

fn stored_key((spool, number): (SpoolKey, u32)) -> Vec<u8> {
    [b"o", &spool_key(spool)[1..], &number.to_be_bytes()].concat()
}

fn token_key(hash: &TokenHash) -> [u8; 33] {
    let mut key = [b't'; 33];
    key[1..].copy_from_slice(hash);
    key
}

fn member_key(number: u64) -> [u8; 9] {
    let mut key = [b'i'; 9];
    key[1..].copy_from_slice(&number.to_be_bytes());
    key
}

fn file_key(name: &str) -> Vec<u8> {
    [b"f", name.as_bytes()].concat()
}

/// Returns the key of an entry of the audit log.
pub fn audit_entry_key(number: u64) -> [u8; 9] {
    let mut key = [AUDIT_ENTRY; 9];
    key[1..].copy_from_slice(&number.to_be_bytes());
    key
}

/// Returns the number of an entry of the audit log; None if the key is of something else.
pub fn audit_entry_of(key: &[u8]) -> Option<u64> {
    match parse_key(key) {
        Some(Key::AuditEntry(number)) => Some(number),
        _ => None,
    }
}

fn encode_member(member: &MemberRecord) -> Vec<u8> {
    tessera_protocol::encode(member).expect("a member's record is a few hundred bytes")
}

fn encode_token(state: &TokenRecord) -> Vec<u8> {
    tessera_protocol::encode(state).expect("a token's record is a few dozen bytes")
}

/// Returns the value of a snapshot of the state after a record.
pub(crate) fn snapshot_value(sequence: Sequence, bytes: &[u8]) -> Vec<u8> {
    [&sequence.to_le_bytes()[..], bytes].concat()
}

/// Returns the keys and values of a farm's state, for `Journal::put`. What only a store elsewhere
/// has is not among them.
pub fn values_of(loaded: &Loaded) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> + '_ {
    let snapshot = loaded
        .snapshot
        .iter()
        .map(|(sequence, bytes)| (SNAPSHOT_KEY.to_vec(), snapshot_value(*sequence, bytes)));
    let records = loaded
        .records
        .iter()
        .map(|(sequence, bytes)| (record_key(*sequence).to_vec(), bytes.clone()));
    let on_disk = loaded.spools.iter().filter(|(_, extent)| extent.length > 0);
    let spools = on_disk.map(|(key, extent)| (spool_key(*key).to_vec(), extent.to_bytes()));
    let stored = loaded.spools.iter().flat_map(|(key, extent)| {
        extent.stored.iter().map(|one| (stored_key((*key, one.number)), one.to_bytes()))
    });
    let tokens =
        loaded.tokens.iter().map(|(hash, token)| (token_key(hash).to_vec(), encode_token(token)));
    let head = loaded.audit_head.iter().map(|head| (AUDIT_HEAD_KEY.to_vec(), head.clone()));
    let members = loaded
        .members
        .iter()
        .map(|(number, member)| (member_key(*number).to_vec(), encode_member(member)));
    snapshot.chain(records).chain(spools).chain(stored).chain(tokens).chain(members).chain(head)
}

/// Returns the spool that a key is about.
pub(crate) fn spool_of(key: &[u8]) -> Option<SpoolKey> {
    match parse_key(key) {
        Some(Key::Spool(spool) | Key::Stored(spool, _)) => Some(spool),
        _ => None,
    }
}

/// Returns the key and the value of a spool that is all on the disk.
pub(crate) fn extent_value(spool: SpoolKey, length: u64) -> (Vec<u8>, Vec<u8>) {
    (spool_key(spool).to_vec(), SpoolExtent::open(length).to_bytes())
}

/// Describes a key for people.
pub fn name_of(key: &[u8]) -> String {
    match parse_key(key) {
        Some(Key::Record(sequence)) => format!("record {sequence} of the journal"),
        Some(Key::Spool(spool)) => format!("the extent of spool {spool}"),
        Some(Key::Stored(spool, number)) => format!("object {number} of spool {spool}"),
        Some(Key::Token(_)) => "a token".into(),
        Some(Key::Member(number)) => format!("member {number}"),
        Some(Key::Snapshot) => "the snapshot".into(),
        Some(Key::Count) => "the number of commits".into(),
        Some(Key::AuditHead) => "the head of the audit log".into(),
        Some(Key::File(name)) => format!("the farm's file `{name}`"),
        Some(Key::AuditEntry(number)) => format!("entry {number} of the audit log"),
        None => format!("key {key:02x?}"),
    }
}

impl Changes {
    /// Returns what changes besides records and the snapshot: keys, each once, with their values;
    /// None for a value that is removed.
    pub fn values(&self) -> impl Iterator<Item = (Vec<u8>, Option<Vec<u8>>)> + '_ {
        let spools = self.spools.iter().map(|(key, extent)| {
            (spool_key(*key).to_vec(), extent.as_ref().map(SpoolExtent::to_bytes))
        });
        let stored = self.stored.iter().map(|(place, stored)| {
            (stored_key(*place), stored.as_ref().map(|stored| stored.to_bytes()))
        });
        let tokens = self
            .tokens
            .iter()
            .map(|(hash, token)| (token_key(hash).to_vec(), token.as_ref().map(encode_token)));
        let members = self.members.iter().map(|(number, member)| {
            (member_key(*number).to_vec(), member.as_ref().map(encode_member))
        });
        let head = self.audit_head.iter().map(|head| (AUDIT_HEAD_KEY.to_vec(), Some(head.clone())));
        let files = self.files.iter().map(|(name, file)| (file_key(name), Some(file.clone())));
        let entries = self
            .audit
            .iter()
            .map(|(number, bytes)| (audit_entry_key(*number).to_vec(), Some(bytes.clone())));
        let old = self.audit.iter().filter_map(|(number, _)| number.checked_sub(AUDIT_ENTRIES_MAX));
        let old = old.map(|number| (audit_entry_key(number).to_vec(), None));
        let of_frames = spools.chain(stored);
        of_frames.chain(tokens).chain(members).chain(head).chain(files).chain(entries).chain(old)
    }
}

impl Loaded {
    /// Adds the value of a key to the content.
    pub fn take(&mut self, key: &[u8], value: Vec<u8>) -> Result<(), String> {
        match parse_key(key) {
            Some(Key::Record(sequence)) => self.records.push((sequence, value)),
            Some(Key::Spool(spool)) => {
                let SpoolExtent { length, sealed, .. } = SpoolExtent::from_bytes(&value)?;
                let extent = self.spools.entry(spool).or_default();
                (extent.length, extent.sealed) = (length, sealed);
            }
            Some(Key::Stored(spool, number)) => {
                let stored = StoredResults::from_bytes(number, &value)?;
                self.spools.entry(spool).or_default().add_stored(Arc::new(stored));
            }
            Some(Key::Token(hash)) => {
                let token = tessera_protocol::decode(&value).map_err(|error| error.to_string())?;
                self.tokens.insert(hash, token);
            }
            Some(Key::Member(number)) => {
                let member: MemberRecord =
                    tessera_protocol::decode(&value).map_err(|error| error.to_string())?;
                if member.number != number {
                    return Err(format!("it is of member {}", member.number));
                }
                self.members.insert(number, member);
            }
            Some(Key::Snapshot) => {
                let (sequence, bytes) = value.split_first_chunk::<8>().ok_or("it is cut short")?;
                self.snapshot = Some((Sequence::from_le_bytes(*sequence), bytes.to_vec()));
            }
            Some(Key::Count) => {}
            Some(Key::AuditHead) => self.audit_head = Some(value),
            Some(Key::File(name)) => drop(self.files.insert(name, value)),
            Some(Key::AuditEntry(_)) => return Err("it is read apart".into()),
            None => return Err("no such kind of key".into()),
        }
        Ok(())
    }
}
