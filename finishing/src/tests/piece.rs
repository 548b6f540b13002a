//! The form of pieces.

use super::*;

#[test]
fn a_piece_survives_the_wire() {
    let mut maker = PieceMaker::default();
    maker.add_chunk(&[1, 2, 3]).unwrap();
    maker.add_chunk(&[4]).unwrap();
    maker.pixels = vec![7; 2 * 24];
    let bytes = maker.finish(Piece::Band { first: 32, rows: 2 }).unwrap();
    let golden = "5446494e01000000200000000200000002000000000000003000000".to_owned();
    let hex: String = bytes[..60].iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, golden + &"0".repeat(65));
    let found = Sections::of(&bytes).unwrap();
    assert_eq!(found.piece, Piece::Band { first: 32, rows: 2 });
    let chunks: Vec<&[u8]> = found.chunks.iter().map(|chunk| &bytes[chunk.clone()]).collect();
    assert_eq!(chunks, [&[1, 2, 3][..], &[4]]);
    assert_eq!(pixels_of(&bytes, bytes.len()).unwrap(), found.pixels);
    assert_eq!(bytes[found.pixels], [7; 48]);

    let mut maker = PieceMaker { pixels_sha256: [9; 32], ..PieceMaker::default() };
    maker.add_file(vec![5; 10]).unwrap();
    let bytes = maker.finish(Piece::Assembly).unwrap();
    let found = Sections::of(&bytes).unwrap();
    assert_eq!((found.piece, found.pixels_sha256), (Piece::Assembly, [9; 32]));
    assert_eq!(bytes[found.files[0].clone()], [5; 10]);
    assert!(pixels_of(&bytes, bytes.len()).is_err(), "an assembly hands on no pixels");
}

#[test]
fn pieces_films_and_chunks_are_told_apart() {
    let film = tessera_protocol::TileSums::empty(1, 1, 3).to_bytes();
    let chunk = tessera_protocol::ChunkValues { count: 0, width: 1, bytes: vec![] }.to_bytes();
    let piece = PieceMaker::default().finish(Piece::Assembly).unwrap();
    assert!(is_piece(&piece) && piece_of(&piece).is_ok());
    assert!(!is_piece(&film) && !is_piece(&chunk) && !is_piece(b"TFI"));
    assert!(piece_of(&film).is_err() && piece_of(b"").is_err());
    assert!(tessera_protocol::TileSums::from_bytes(&piece).is_err());
    assert!(!tessera_protocol::ChunkValues::is_chunk(&piece));
}

#[test]
fn what_does_not_fit_into_a_result_is_an_error() {
    let mut maker = PieceMaker::default();
    maker.add_file(vec![0; RESULT_BYTES_MAX / 2]).unwrap();
    let more = maker.add_file(vec![0; RESULT_BYTES_MAX / 2]);
    assert!(matches!(more, Err(FinishError::TooLarge)));
    assert!(matches!(maker.finish(Piece::Assembly), Err(FinishError::TooLarge)));
}
