//! Arrays (.npy) and kernels (PTX) that are none: the decoders that clients and nodes read them
//! with.

use crate::hostile::random::{Dice, damaged};
use tessera_protocol::compute::npy::Header;
use tessera_ptx::Module;

const PTX: &str = include_str!("../../examples/compute/blur.ptx");
/// Rounds of damage.
const DAMAGED: usize = 300;

fn npy(header: &str) -> Vec<u8> {
    let length = (header.len() as u16).to_le_bytes();
    [&b"\x93NUMPY\x01\x00"[..], &length, header.as_bytes(), &[0; 64]].concat()
}

// promise: P8
#[test]
fn malformed_arrays_are_refused() {
    let headers = [
        "{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551615,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4294967296), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999999999,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (17,), }",
        "{'descr': '<f4', 'fortran_order': True, 'shape': (4, 4), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '>f4', 'fortran_order': False, 'shape': (16,), }",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (16,), }",
        "{'descr': __import__('os').system('true'), 'fortran_order': False, 'shape': (16,), }",
        "{'descr': '<f4', 'descr': '<f8', 'fortran_order': False, 'shape': (16,), }",
        "{'shape': (16,), }",
        "{",
        "",
        "((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((",
    ];
    for header in headers {
        let file = npy(header);
        assert!(Header::read(&file, file.len() as u64).is_err(), "{header}");
    }
    let deep = npy(&"(".repeat(60_000));
    assert!(Header::read(&deep, deep.len() as u64).is_err());
    let good = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (16,), }");
    assert!(Header::read(&good, good.len() as u64).is_ok());
    let mut dice = Dice(0x0a44a);
    for _ in 0..DAMAGED {
        let bad = damaged(&good, &mut dice);
        // Either is fine; what is read must lie within the file.
        if let Ok(header) = Header::read(&bad, bad.len() as u64) {
            let values: u64 = header.shape.iter().product();
            assert_eq!(
                header.data_offset as u64 + values * header.element.bytes() as u64,
                bad.len() as u64
            );
        }
    }
}

// promise: P8
#[test]
fn malformed_kernels_are_refused() {
    assert!(Module::parse(PTX).is_ok());
    let texts = [
        String::new(),
        "\0".repeat(1000),
        ".version 99999999999.0".into(),
        ".version 8.0\n.target sm_75\n.address_size 64\n.global .b8 x[18446744073709551615];"
            .into(),
        ".version 8.0\n.target sm_75\n.address_size 64\n.global .align 9223372036854775808 .b8 \
            x[4];"
            .into(),
        format!(
            ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry f(){}",
            "{".repeat(200_000)
        ),
        PTX.replace("ret;", "bra nowhere;"),
        PTX.replace(".reg .b32", ".reg .b99"),
        PTX.replace("%r<", "%r<99999999999"),
        PTX[..PTX.len() / 2].to_owned(),
        format!("//{}", "/*".repeat(100_000)),
    ];
    for text in &texts {
        assert!(Module::parse(text).is_err(), "{}", &text[..text.len().min(80)]);
    }
    let mut dice = Dice(0x97c);
    for _ in 0..DAMAGED {
        // Either is fine, and neither is a panic.
        let _ = Module::parse(&String::from_utf8_lossy(&damaged(PTX.as_bytes(), &mut dice)));
    }
}
