//! Tests of well-formed and of malformed headers.

use super::*;

fn file(header: &str) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&[1, 0]);
    bytes.extend_from_slice(&(header.len() as u16).to_le_bytes());
    bytes.extend_from_slice(header.as_bytes());
    bytes
}

fn read(header: &str, values: u64) -> Result<Header, NpyError> {
    let bytes = file(header);
    Header::read(&bytes, bytes.len() as u64 + values)
}

#[test]
fn every_header_that_is_written_is_read() {
    for element in Element::ALL {
        for shape in [&[][..], &[7], &[2, 3], &[2, 3, 4], &[1, 2, 3, 4], &[0, 5]] {
            let bytes = header_bytes(element, shape);
            assert_eq!(bytes.len() % ALIGNMENT, 0);
            let values: u64 = shape.iter().product();
            let length = bytes.len() as u64 + values * element.bytes() as u64;
            let header = Header::read(&bytes, length).unwrap();
            assert_eq!((header.element, &header.shape[..]), (element, shape));
            assert_eq!(header.data_offset, bytes.len());
        }
    }
}

#[test]
fn the_written_bytes_are_numpys_own() {
    let bytes = header_bytes(Element::F32, &[480, 640, 3]);
    let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (480, 640, 3), }";
    assert!(std::str::from_utf8(&bytes[10..]).unwrap().starts_with(text));
    assert_eq!((bytes.len(), bytes.last()), (128, Some(&b'\n')));
    let types = [(Element::F16, "<f2"), (Element::U8, "|u1"), (Element::Bool, "|b1")];
    for (element, descr) in types {
        let bytes = header_bytes(element, &[1]);
        let text = format!("{{'descr': '{descr}', ");
        assert!(std::str::from_utf8(&bytes[10..]).unwrap().starts_with(&text));
    }
    let one = header_bytes(Element::I64, &[7]);
    assert!(std::str::from_utf8(&one[10..]).unwrap().contains("'shape': (7,), }"));
}

#[test]
fn spellings_of_other_writers_are_read() {
    let header =
        read("{\"shape\": (2,3), \"fortran_order\":False ,'descr':\"<f8\"}\n", 48).unwrap();
    assert_eq!((header.element, header.shape), (Element::F64, vec![2, 3]));
    assert_eq!(
        read("{'descr': '<i4', 'fortran_order': True, 'shape': (3L,)}", 12).unwrap().shape,
        [3]
    );
    let mut long = MAGIC.to_vec();
    long.extend_from_slice(&[2, 0, 54, 0, 0, 0]);
    long.extend_from_slice(b"{'descr': '<u8', 'fortran_order': False, 'shape': ()} \n");
    assert_eq!(
        Header::read(&long, long.len() as u64 - 1 + 8).map(|header| header.data_offset),
        Ok(66)
    );
}

#[test]
fn headers_that_lie_are_refused_with_the_reason() {
    let shaped =
        |shape: &str| format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}");
    assert!(matches!(
        read(&shaped("(2, 3)"), 20),
        Err(NpyError::Length { expected: 24, found: 20, .. })
    ));
    assert!(matches!(read(&shaped("(4294967296, 4294967296)"), 0), Err(NpyError::Huge(_))));
    assert!(matches!(read(&shaped("(18446744073709551615,)"), 0), Err(NpyError::Huge(_))));
    assert_eq!(read(&shaped("(1, 1, 1, 1, 1)"), 4), Err(NpyError::Axes(5)));
    for shape in ["(-1,)", "(1e3,)", "(99999999999999999999,)", "(,)", "7", "(7", "(1 2)", "(+1,)"]
    {
        assert!(matches!(read(&shaped(shape), 4), Err(NpyError::Malformed(_))), "{shape}");
    }
    let fortran = read("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}", 24);
    assert_eq!(fortran, Err(NpyError::Fortran));
    for name in [">f4", ">f2", "<f16", "|S1", "|O", "<c32", "<U4", "f4"] {
        let header = format!("{{'descr': '{name}', 'fortran_order': False, 'shape': (1,)}}");
        assert_eq!(read(&header, 4), Err(NpyError::Type(name.into())));
    }
    let bad = [
        "",
        "{",
        "[]",
        "{'descr': '<f4'}",
        "{descr: 1}",
        "{'a': 1}",
        "{'shape': (1,) 'descr': '<f4'}",
    ];
    for header in bad {
        assert!(matches!(read(header, 4), Err(NpyError::Malformed(_))), "{header}");
    }
    let twice = "{'shape': (1,), 'shape': (1,), 'descr': '<f4', 'fortran_order': False}";
    assert!(matches!(read(twice, 4), Err(NpyError::Malformed(_))));
}

#[test]
fn every_cut_and_every_flipped_bit_ends_without_a_panic() {
    let bytes = header_bytes(Element::F32, &[2, 3]);
    for length in 0..bytes.len() {
        assert!(Header::read(&bytes[..length], 24 + bytes.len() as u64).is_err(), "{length}");
    }
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let _ = Header::read(&damaged, 24 + bytes.len() as u64);
    }
    assert_eq!(Header::read(b"\x93NUMPY\x09\x00\x00\x00", 10), Err(NpyError::Version(9, 0)));
    assert_eq!(
        Header::read(b"\x93NUMPY\x02\x00\xff\xff\xff\xff", 12),
        Err(NpyError::Long(u64::from(u32::MAX)))
    );
    assert_eq!(Header::read(b"P6 1 1 255", 10), Err(NpyError::Foreign));
}
