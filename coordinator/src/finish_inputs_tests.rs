//! Tests of what finishing units read: which parts, in which order, and damage.

use super::*;
use crate::spool::contract::key;
use crate::spool::{DiskSpools, SpoolEntry, Spools, path_of};
use bytes::Bytes;
use std::collections::BTreeMap;
use tessera_protocol::{BlobHash, Epoch, TileSums};

/// 6 columns and 3 rows of tiles of 32 pixels, with two passes each.
fn spec() -> RenderSpec {
    let (width, height, tile) = (192, 96, 32);
    RenderSpec { width, height, tile, spp: 4, unit_samples: 2, ..RenderSpec::default() }
}

struct Bench {
    root: tempfile::TempDir,
    spools: DiskSpools,
    order: InputsOrder,
    films: Vec<Vec<u8>>,
}

impl Bench {
    /// A spool with the films of all units but one.
    fn new(finish: Finish, without: Option<u32>) -> Self {
        let root = tempfile::tempdir().unwrap();
        let (mut spools, _) = DiskSpools::open(root.path(), BTreeMap::new(), true).unwrap();
        let (spec, key) = (spec(), key(1));
        let units = 0..Grid::of(&spec).units();
        let films: Vec<Vec<u8>> = units.clone().map(|unit| film(unit).to_bytes()).collect();
        let entries: Vec<SpoolEntry> = units
            .filter(|unit| Some(*unit) != without)
            .map(|unit| entry(key, unit, films[unit as usize].clone()))
            .collect();
        let extents = spools.append(&entries).unwrap();
        let extent = extents[&key].clone();
        spools.accept(extents);
        let order = InputsOrder { key, extent, spec, finish, rounds: None };
        Self { root, spools, order, films }
    }

    fn parts(&self) -> Result<InputParts, InputsError> {
        InputParts::of(&self.order, &*self.spools.reader())
    }
}

fn film(unit: u32) -> TileSums {
    let mut film = TileSums::empty(32, 32, 3);
    film.samples = 2;
    film.values
        .iter_mut()
        .enumerate()
        .for_each(|(at, value)| *value = i64::from(unit) << (at % 30));
    film
}

fn entry(key: SpoolKey, unit: u32, bytes: Vec<u8>) -> SpoolEntry {
    let header = EntryHeader {
        unit: UnitIndex(unit),
        epoch: Epoch(7 + u64::from(unit)),
        first: 0,
        samples: 2,
        length: bytes.len() as u32,
        hash: BlobHash::of(&bytes),
    };
    SpoolEntry { key, header, body: Bytes::from(bytes).into() }
}

fn band(first: u32, rows: u32) -> Finish {
    Finish { piece: Piece::Band { first, rows }, exposure_bits: 0 }
}

/// Reads everything in steps of so many bytes.
fn read(parts: &mut InputParts, step: usize) -> io::Result<Vec<u8>> {
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; step]);
    loop {
        match parts.read_at(bytes.len() as u64, &mut buffer)? {
            0 => return Ok(bytes),
            count => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}

#[test]
fn a_band_reads_the_films_of_its_rows_and_no_others() {
    let bench = Bench::new(band(32, 32), None);
    let grid = Grid::of(&bench.order.spec);
    let mut expected = Vec::new();
    for tile in 6..12 {
        for pass in 0..2 {
            let unit = grid.unit_of(tile, pass).unwrap();
            let film = &bench.films[unit.0 as usize];
            expected.extend(write_part_head(tile, film.len() as u32));
            expected.extend_from_slice(film);
        }
    }
    for step in [1 << 20, 1000, 7] {
        let mut parts = bench.parts().unwrap();
        assert_eq!((parts.count(), parts.length()), (12, expected.len() as u64));
        assert!(read(&mut parts, step).unwrap() == expected, "in steps of {step}");
    }
}

#[test]
fn a_denoised_band_reads_as_far_as_the_denoiser_looks() {
    let mut bench = Bench::new(band(0, 32), None);
    // Its kernel looks 46 rows further, which are two more rows of tiles.
    bench.order.spec.denoise = true;
    assert_eq!(bench.parts().unwrap().count(), 36);
    bench.order.finish = Finish { piece: Piece::Frame { rows: 96 }, exposure_bits: 0 };
    bench.order.spec.denoise = false;
    assert_eq!(bench.parts().unwrap().count(), 36);
}

#[test]
fn a_missing_result_is_named() {
    let bench = Bench::new(band(32, 32), Some(13));
    let error = bench.parts().map(|parts| parts.count()).unwrap_err();
    assert_eq!(error.lost_unit(), Some(UnitIndex(13)), "{error}");
}

/// A film of 512 × 512 pixels that does not compress, which is longer than what is held.
fn long_film() -> Vec<u8> {
    let mut film = TileSums::empty(512, 512, 3);
    film.samples = 2;
    let mut state = 1u64;
    film.values.iter_mut().for_each(|value| {
        // Xorshift (Marsaglia 2003), and a product of its high bits.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        *value = state.wrapping_mul(state >> 32 | 1) as i64;
    });
    film.to_bytes()
}

/// Reads a short and a part of a long result, before and after the end of the long one is changed
/// on the disk, with so many bytes of results in memory. Returns what came of it the second time.
fn short_and_long(recent: usize) -> Result<(), io::Error> {
    let root = tempfile::tempdir().unwrap();
    let (mut spools, _) = DiskSpools::open(root.path(), BTreeMap::new(), true).unwrap();
    spools.keep_recent(recent);
    let key = key(1);
    let films = [film(0).to_bytes(), long_film()];
    assert!(films[1].len() > 2 * HELD_BYTES as usize);
    let entries = [entry(key, 0, films[0].clone()), entry(key, 1, films[1].clone())];
    let extent = spools.append(&entries).unwrap().remove(&key).unwrap();
    spools.accept([(key, extent.clone())].into());
    let parts = || {
        let index = SpoolIndex::read(&*spools.reader(), key, &extent).unwrap();
        let mut parts = InputParts { index, parts: Vec::new(), length: 0, last: None };
        for (unit, bytes) in
            [0..films[0].len() as u64, 100..films[1].len() as u64 - 50].into_iter().enumerate()
        {
            let entry = parts.index.of_unit(UnitIndex(unit as u32)).unwrap()[0];
            parts.add(unit as u32, entry, bytes);
        }
        parts
    };
    let head = |unit: u32, bytes: &[u8]| write_part_head(unit, bytes.len() as u32).to_vec();
    let cut = &films[1][100..films[1].len() - 50];
    let expected = [head(0, &films[0]), films[0].clone(), head(1, cut), cut.to_vec()].concat();
    assert!(read(&mut parts(), 300_001).unwrap() == expected);
    let path = path_of(root.path(), key);
    let mut spool = std::fs::read(&path).unwrap();
    let last = spool.len() - 1;
    spool[last] ^= 4;
    std::fs::write(&path, spool).unwrap();
    let mut buffer = vec![0; 100];
    let at = films[0].len() as u64 + 2 * HEAD;
    let count = parts().read_at(at, &mut buffer)?;
    assert!(count == 100 && buffer == cut[..100]);
    Ok(())
}

#[test]
fn a_long_result_is_read_in_parts_after_a_check() {
    // Damage is seen before the first byte is sent, wherever it is.
    let error = short_and_long(0).unwrap_err().downcast::<SpoolError>().unwrap();
    assert_eq!(error.lost_unit(), Some(UnitIndex(1)), "{error}");
}

#[test]
fn a_long_result_in_memory_is_not_read_from_the_disk() {
    short_and_long(1 << 30).expect("it is in memory");
}

// promise: P2
#[test]
fn a_damaged_result_is_named_and_its_bytes_are_not_sent() {
    let bench = Bench::new(band(32, 32), None);
    let file = path_of(bench.root.path(), bench.order.key);
    let mut spool = std::fs::read(&file).unwrap();
    let unit = Grid::of(&bench.order.spec).unit_of(8, 1).unwrap();
    let film = &bench.films[unit.0 as usize];
    let at = spool.windows(film.len()).position(|bytes| bytes == film.as_slice()).unwrap();
    spool[at + film.len() / 2] ^= 1;
    std::fs::write(&file, spool).unwrap();
    let mut parts = bench.parts().unwrap();
    let error = read(&mut parts, 1 << 16).unwrap_err().downcast::<SpoolError>().unwrap();
    assert_eq!(error.lost_unit(), Some(unit), "{error}");
}
