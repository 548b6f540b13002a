//! A commit as rows: the records of a group in one, the snapshot in parts, other values by their
//! keys. Each has a checksum with its key.

use crate::rules::Sent;
use tessera_coordinator::store::envelope::{open_value, seal_value};
use tessera_coordinator::store::keys::{SNAPSHOT_KEY, record_key};
use tessera_coordinator::store::{Changes, Sequence};

/// Largest part of a snapshot in bytes.
pub(crate) const PART_BYTES: usize = 8 << 20;
/// Most bytes of one row: a little less than PostgreSQL takes.
const ROW_BYTES_MAX: usize = 1000 << 20;

/// What a commit changes, as rows.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// First sequence and number of the records; 0 records if there are none.
    pub(crate) first: i64,
    pub(crate) count: i32,
    pub(crate) records: Vec<u8>,
    /// Keys and sealed values to write.
    pub(crate) keys: Vec<Vec<u8>>,
    pub(crate) values: Vec<Vec<u8>>,
    pub(crate) removed: Vec<Vec<u8>>,
    /// Sequence that the snapshot is of, and its sealed parts; no parts if there is none.
    pub(crate) snapshot_at: i64,
    pub(crate) parts: Vec<Vec<u8>>,
    /// Sequence of the newest record after the commit.
    pub(crate) head: i64,
}

impl Group {
    /// Makes the rows of changes that follow the record `head`. The error says why they do not.
    pub(crate) fn of(changes: &Changes, head: i64) -> Result<Self, String> {
        let mut group = Self { head, ..Self::default() };
        if let Some((first, _)) = changes.records.first() {
            for (expected, (sequence, _)) in (head + 1..).zip(&changes.records) {
                if signed(*sequence)? != expected {
                    return Err(format!("record {sequence} comes where {expected} is next"));
                }
            }
            group.first = signed(*first)?;
            group.count =
                i32::try_from(changes.records.len()).map_err(|error| error.to_string())?;
            group.head = head + i64::from(group.count);
            let key = group_key(group.first, group.count);
            group.records = seal_value(&key, &joined(&changes.records)?);
        }
        for (key, value) in changes.values() {
            match value {
                Some(value) => {
                    group.values.push(seal_value(&key, &value));
                    group.keys.push(key);
                }
                None => group.removed.push(key),
            }
        }
        if let Some((sequence, bytes)) = &changes.snapshot {
            group.snapshot_at = signed(*sequence)?;
            group.head = group.head.max(group.snapshot_at);
            group.parts = parts(group.snapshot_at, bytes);
        }
        Ok(group)
    }
}

impl Sent for Group {
    fn head(&self) -> i64 {
        self.head
    }

    fn bytes(&self) -> usize {
        let all = self.keys.iter().chain(&self.values).chain(&self.removed).chain(&self.parts);
        self.records.len() + all.map(Vec::len).sum::<usize>()
    }
}

fn signed(sequence: Sequence) -> Result<i64, String> {
    i64::try_from(sequence).map_err(|_| format!("sequence {sequence} is too large"))
}

/// Key of the checksum of a group of records.
fn group_key(first: i64, count: i32) -> Vec<u8> {
    [&record_key(first.cast_unsigned())[..], &count.to_be_bytes()].concat()
}

/// Joins records, each after its length (u32, little endian).
fn joined(records: &[(Sequence, Vec<u8>)]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(records.iter().map(|(_, record)| record.len() + 4).sum());
    for (sequence, record) in records {
        let length = u32::try_from(record.len())
            .map_err(|_| format!("record {sequence} has {} bytes", record.len()))?;
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(record);
    }
    match bytes.len() > ROW_BYTES_MAX {
        true => Err(format!("a group of records has {} bytes", bytes.len())),
        false => Ok(bytes),
    }
}

/// Opens a group and parts it into its records. The error describes the damage.
pub(crate) fn records_of(
    first: i64,
    count: i32,
    sealed: &[u8],
) -> Result<Vec<(Sequence, Vec<u8>)>, String> {
    let joined = open_value(&group_key(first, count), sealed)?;
    let mut bytes = joined.as_slice();
    let mut records = Vec::new();
    for sequence in first.cast_unsigned()..first.cast_unsigned() + u64::from(count.unsigned_abs()) {
        let (length, rest) = bytes.split_first_chunk::<4>().ok_or("a record is cut short")?;
        let length = u32::from_le_bytes(*length) as usize;
        let (record, rest) = rest.split_at_checked(length).ok_or("a record is cut short")?;
        records.push((sequence, record.to_vec()));
        bytes = rest;
    }
    match bytes.is_empty() {
        true => Ok(records),
        false => Err(format!("{} bytes are left after its records", bytes.len())),
    }
}

/// Key of the checksum of a part of a snapshot.
fn part_key(sequence: i64, part: usize, parts: usize) -> Vec<u8> {
    let place = [part as u64, parts as u64].map(u64::to_be_bytes).concat();
    [SNAPSHOT_KEY, &sequence.to_be_bytes(), &place].concat()
}

/// Cuts a snapshot into sealed parts, at least one.
fn parts(sequence: i64, bytes: &[u8]) -> Vec<Vec<u8>> {
    let slices: Vec<&[u8]> = match bytes.is_empty() {
        true => vec![bytes],
        false => bytes.chunks(PART_BYTES).collect(),
    };
    let count = slices.len();
    let seal = |(part, slice): (usize, &&[u8])| seal_value(&part_key(sequence, part, count), slice);
    slices.iter().enumerate().map(seal).collect()
}

/// Opens a part of a snapshot. The error describes the damage.
pub(crate) fn open_part(
    sequence: i64,
    part: i32,
    parts: i32,
    sealed: &[u8],
) -> Result<Vec<u8>, String> {
    let place = |number: i32| usize::try_from(number).map_err(|error| error.to_string());
    open_value(&part_key(sequence, place(part)?, place(parts)?), sealed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_opens_to_its_records_and_damage_is_seen() {
        let records = vec![(5, vec![1, 2, 3]), (6, vec![]), (7, vec![9; 300])];
        let changes = Changes { records: records.clone(), ..Changes::default() };
        let group = Group::of(&changes, 4).unwrap();
        assert_eq!((group.first, group.count, group.head), (5, 3, 7));
        assert_eq!(records_of(5, 3, &group.records), Ok(records));
        assert!(records_of(6, 3, &group.records).is_err());
        assert!(records_of(5, 2, &group.records).is_err());
        for position in 0..group.records.len() {
            let mut damaged = group.records.clone();
            damaged[position] ^= 4;
            assert!(records_of(5, 3, &damaged).is_err(), "byte {position}");
        }
        assert!(Group::of(&changes, 3).is_err(), "a gap");
        assert!(Group::of(&changes, 5).is_err(), "a record twice");
    }

    #[test]
    fn a_snapshot_is_cut_into_parts_that_open_at_their_places_only() {
        let bytes = vec![3; PART_BYTES + 1];
        let changes = Changes { snapshot: Some((9, bytes.clone())), ..Changes::default() };
        let group = Group::of(&changes, 0).unwrap();
        assert_eq!((group.parts.len(), group.head, group.snapshot_at), (2, 9, 9));
        let opened = [0, 1].map(|part| open_part(9, part, 2, &group.parts[part as usize]).unwrap());
        assert_eq!(opened.concat(), bytes);
        assert!(open_part(9, 1, 2, &group.parts[0]).is_err());
        assert!(open_part(8, 0, 2, &group.parts[0]).is_err());
    }
}
