//! Pieces and inputs of every wrong form are errors, and leave no file.

use crate::made::{
    Kept, file_of, finish_of, frame, inputs_of, joined, piece_of_frame, pieces_of, spec,
};
use crate::*;
use tessera_protocol::job::{ExrCompressionSpec, FormatSpec, RenderSpec};
use tessera_protocol::node::Piece;

fn refused(spec: &RenderSpec, pieces: &[Vec<u8>]) -> String {
    match joined(spec, pieces) {
        Err(error @ FinishError::Piece(_)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn missing_doubled_and_swapped_pieces_are_errors() {
    for formats in [vec![FormatSpec::Exr, FormatSpec::Png], vec![FormatSpec::Jpeg]] {
        let spec = RenderSpec { formats, ..spec(40, 100, 32) };
        let pieces = pieces_of(&spec, 32, 1);
        let (bands, assembly) = (pieces[..4].to_vec(), pieces[4].clone());
        let whole = piece_of_frame(&spec);
        let with = |more: &Vec<u8>| [&bands[..], std::slice::from_ref(more)].concat();
        for wrong in [
            vec![],
            bands.clone(),
            vec![assembly.clone()],
            pieces[1..].to_vec(),
            [&pieces[..2], &pieces[3..]].concat(),
            [&pieces[..1], &pieces[..]].concat(),
            vec![
                bands[1].clone(),
                bands[0].clone(),
                bands[2].clone(),
                bands[3].clone(),
                assembly.clone(),
            ],
            with(&whole),
            [&pieces[..], &[assembly]].concat(),
            vec![whole.clone(), whole],
        ] {
            refused(&spec, &wrong);
        }
    }
}

#[test]
fn pieces_of_another_job_are_errors() {
    let own = RenderSpec { exr_compression: ExrCompressionSpec::Zips, ..spec(40, 100, 32) };
    let others = [
        RenderSpec { formats: vec![FormatSpec::Exr], ..own.clone() },
        RenderSpec { formats: vec![FormatSpec::Png], ..own.clone() },
        RenderSpec { exr_compression: ExrCompressionSpec::Zip, ..own.clone() },
        RenderSpec { transparent: true, ..own.clone() },
        RenderSpec { width: 41, ..own.clone() },
        RenderSpec { height: 99, ..own.clone() },
    ];
    let pieces = pieces_of(&own, 32, 1);
    for other in others {
        refused(&other, &pieces);
    }
    // Chunks that are longer than their rows without compression.
    let narrow = RenderSpec { width: 4, formats: vec![FormatSpec::Exr], ..own.clone() };
    let wide = RenderSpec { formats: vec![FormatSpec::Exr], ..own };
    let told = refused(&narrow, &[piece_of_frame(&wide)]);
    assert!(told.contains("too long"), "{told}");
}

#[test]
fn every_cut_and_changed_piece_is_an_error() {
    let spec = spec(20, 70, 32);
    let (bands, whole) = (pieces_of(&spec, 32, 1), vec![piece_of_frame(&spec)]);
    for (pieces, index) in [(&bands, 0), (&bands, 2), (&bands, 3), (&whole, 0)] {
        let piece = &pieces[index];
        let fails = |bytes: &[u8]| {
            let mut pieces = pieces.clone();
            pieces[index] = bytes.to_vec();
            refused(&spec, &pieces)
        };
        for end in (0..70.min(piece.len())).chain([piece.len() - 1]) {
            assert!(piece_of(&piece[..end]).is_err() && pixels_of(&piece[..end], end).is_err());
            fails(&piece[..end]);
        }
        fails(&[&piece[..], &[0]].concat());
        let lengths = usize::from(piece[16] + piece[20]);
        let head = (0..60 + 4 * lengths).flat_map(|place| (0..8).map(move |bit| (place, bit)));
        for (place, bit) in head {
            let mut changed = piece.clone();
            changed[place] ^= 1 << bit;
            // The hash of pixels is what the unit says.
            match (28..60).contains(&place) && piece[5] != 0 {
                true => assert_eq!(piece_of(&changed).unwrap(), piece_of(piece).unwrap()),
                false => drop(fails(&changed)),
            }
        }
    }
}

#[test]
fn huge_lengths_are_refused_before_memory_is_taken() {
    let mut header = vec![0u8; 60];
    header[..5].copy_from_slice(b"TFIN\x01");
    for kind in 0..=3 {
        header[5] = kind;
        for (place, value) in [8, 12, 16, 20, 24]
            .into_iter()
            .flat_map(|place| [40_000, 0x7fff_ffff, u32::MAX].map(|value| (place, value)))
        {
            let mut bytes = header.clone();
            bytes[12..16].copy_from_slice(&if kind == 2 { 0u32 } else { 32 }.to_le_bytes());
            bytes[24..28].copy_from_slice(&if kind == 0 { 3072u32 } else { 0 }.to_le_bytes());
            bytes[place..place + 4].copy_from_slice(&value.to_le_bytes());
            assert!(piece_of(&bytes).is_err(), "{value} at byte {place} of kind {kind}");
        }
    }
}

#[test]
fn errors_of_the_reader_pass_and_no_file_is_finished() {
    let spec = spec(40, 100, 32);
    let mut pieces = pieces_of(&spec, 32, 1).into_iter();
    let lost = std::io::Error::other("lost");
    let first = pieces.next().unwrap();
    let mut pieces = [Ok(first), Err(FinishError::Results(Box::new(lost)))].into_iter();
    let error = join(&frame(&spec), &mut pieces, &Kept::default()).unwrap_err();
    assert!(matches!(error, FinishError::Results(_)), "{error:?}");
}

#[test]
fn pixels_that_do_not_fit_are_not_assembled() {
    let spec = spec(8, 100, 32);
    let row = 8 * 12;
    let fails = |parts: &[(u32, Vec<u8>)]| {
        let finish = finish_of(&spec, Piece::Assembly);
        let made = make_piece(&spec, &finish, &inputs_of(parts), &Running::default());
        assert!(matches!(made, Err(FinishError::Piece(_))), "{made:?}");
    };
    let rows = |rows: usize| vec![0; rows * row];
    fails(&[]);
    fails(&[(0, rows(99))]);
    fails(&[(0, rows(101))]);
    fails(&[(1, rows(100))]);
    fails(&[(0, rows(50)), (0, rows(50))]);
    fails(&[(0, rows(50)), (2, rows(50))]);
    fails(&[(0, vec![0; 50 * row + 1]), (1, vec![0; 50 * row - 1])]);
}

#[test]
fn films_of_another_shape_are_not_finished() {
    let spec = spec(40, 40, 32);
    let finish = finish_of(&spec, Piece::Frame { rows: 40 });
    let films = crate::made::films_of(&spec, &finish, 1);
    let fails = |parts: &[(u32, Vec<u8>)]| {
        make_piece(&spec, &finish, &inputs_of(parts), &Running::default()).unwrap_err()
    };
    let changed = |change: &dyn Fn(&mut tessera_protocol::TileSums)| {
        let mut films = films.clone();
        let mut film = tessera_protocol::TileSums::from_bytes(&films[0].1).unwrap();
        change(&mut film);
        films[0].1 = film.to_bytes();
        fails(&films)
    };
    assert!(matches!(changed(&|film| film.samples = 7), FinishError::Shape { .. }));
    let short = changed(&|film| {
        film.height -= 1;
        film.values.truncate(film.values.len() - 3 * usize::from(film.width));
    });
    assert!(matches!(short, FinishError::Shape { .. }));
    assert!(matches!(fails(&films[1..]), FinishError::Results(_)));
    let doubled = [&films[..], &films[..1]].concat();
    assert!(matches!(fails(&doubled), FinishError::Shape { .. } | FinishError::Results(_)));
    let mut damaged = films.clone();
    damaged[0].1.truncate(30);
    assert!(matches!(fails(&damaged), FinishError::Results(_)));
}

#[test]
fn no_file_is_both_too_short_and_read() {
    let (file, parts, bytes) = file_of(&[(0, vec![0; 8 * 12])]);
    let inputs = Inputs::open(file.try_clone().unwrap(), parts, bytes).unwrap();
    file.set_len(20).unwrap();
    let spec = spec(8, 1, 8);
    let finish = finish_of(&spec, Piece::Assembly);
    let made = make_piece(&spec, &finish, &inputs, &Running::default());
    assert!(matches!(made, Err(FinishError::Results(_))));
}
