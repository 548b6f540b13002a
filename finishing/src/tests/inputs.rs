//! Inputs of every form: their parts in any order, and files that are no inputs.

use super::*;
use crate::made::{file_of, inputs_of};
use std::io::Write;

fn film(samples: u32, value: i64) -> TileSums {
    let mut film = TileSums::empty(4, 3, 3);
    film.samples = samples;
    film.values.fill(value);
    film
}

#[test]
fn parts_of_a_tile_are_added_in_any_order() {
    let part = |place, samples, value| (place, film(samples, value).to_bytes());
    let inputs = inputs_of(&[part(7, 1, 10), part(2, 5, 1), part(7, 2, 400), part(7, 4, 3000)]);
    assert_eq!(inputs.sums(7).unwrap(), film(7, 3410));
    assert_eq!(inputs.sums(2).unwrap(), film(5, 1));
    for missing in [0, 1, 3, 8, u32::MAX] {
        let error = inputs.sums(missing).unwrap_err();
        assert!(matches!(error, FinishError::Results(_)), "{error:?}");
    }
    assert!(inputs_of(&[]).sums(0).is_err());
}

#[test]
fn parts_are_read_by_place() {
    let inputs = inputs_of(&[(3, vec![1, 2]), (0, vec![5]), (1, vec![4; 9])]);
    let all: Vec<Vec<u8>> = inputs.in_order().map(Result::unwrap).collect();
    assert_eq!(all, [vec![5], vec![4; 9], vec![1, 2]]);
    assert_eq!(inputs.bytes(3).unwrap(), [1, 2]);
    assert!(inputs.bytes(2).is_err() && inputs.bytes(4).is_err());
}

#[test]
fn films_of_a_tile_that_do_not_fit_are_an_error() {
    let other = TileSums::empty(3, 4, 3);
    let inputs = inputs_of(&[(0, film(1, 1).to_bytes()), (0, other.to_bytes()), (1, vec![1])]);
    assert!(inputs.sums(0).is_err() && inputs.sums(1).is_err());
}

#[test]
fn files_with_other_parts_are_refused() {
    let parts = [(3, vec![1, 2, 3]), (1, vec![4; 9])];
    let (_, count, length) = file_of(&parts);
    let open = |parts: u32, bytes: u64| {
        Inputs::open(file_of(&[(3, vec![1, 2, 3]), (1, vec![4; 9])]).0, parts, bytes)
    };
    assert!(open(count, length).is_ok());
    for (parts, bytes) in
        [(0, length), (1, length), (3, length), (u32::MAX, length), (2, length - 1), (2, u64::MAX)]
    {
        assert!(open(parts, bytes).is_err(), "{parts} parts in {bytes} bytes");
    }
    let file = |bytes: &[u8]| {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        Inputs::open(file, 1, bytes.len() as u64)
    };
    // Empty, within a head, without bytes, too short, too long, and longer than a result.
    assert!(file(&[]).is_err() && file(&[0; 7]).is_err() && file(&[0; 8]).is_err());
    let head =
        |length: u32, more: usize| [&write_part_head(0, length)[..], &vec![0; more]].concat();
    assert!(file(&head(5, 5)).is_ok());
    assert!(file(&head(5, 4)).is_err() && file(&head(5, 6)).is_err());
    assert!(file(&head(u32::MAX, 5)).is_err());
    let long = RESULT_BYTES_MAX + 1;
    let sparse = tempfile::tempfile().unwrap();
    sparse.write_all_at(&write_part_head(0, long as u32), 0).unwrap();
    sparse.set_len(long as u64 + 8).unwrap();
    assert!(Inputs::open(sparse, 1, long as u64 + 8).is_err());
}

#[test]
fn changed_heads_never_panic() {
    let parts = [(0, film(1, 5).to_bytes()), (1, film(2, 6).to_bytes())];
    let (file, count, length) = file_of(&parts);
    let second = 8 + parts[0].1.len() as u64;
    for place in (0..8).chain(second..second + 8) {
        for bit in 0..8 {
            let mut byte = [0];
            file.read_exact_at(&mut byte, place).unwrap();
            file.write_all_at(&[byte[0] ^ 1 << bit], place).unwrap();
            if let Ok(inputs) = Inputs::open(file.try_clone().unwrap(), count, length) {
                assert!(place % second < 4, "only places can change unseen");
                assert!(inputs.sums(0).is_err() || inputs.sums(1).is_err());
            }
            file.write_all_at(&byte, place).unwrap();
        }
    }
}
