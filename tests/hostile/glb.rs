//! Traps in the binary container: lengths and kinds of chunks that do not hold, and damaged bytes.

use crate::hostile::random::{Dice, damaged};
use crate::hostile::scenes::whole;
use crate::hostile::traps::Trap;
use serde_json::json;

const JSON: u32 = 0x4e4f_534a;
const BIN: u32 = 0x004e_4942;
/// Rounds of damage.
const DAMAGED: usize = 40;

fn chunk(kind: u32, bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_le_bytes()[..], &kind.to_le_bytes(), bytes].concat()
}

fn container(version: u32, length: Option<u32>, chunks: &[Vec<u8>]) -> Vec<u8> {
    let body = chunks.concat();
    let length = length.unwrap_or(12 + body.len() as u32);
    [&b"glTF"[..], &version.to_le_bytes(), &length.to_le_bytes(), &body].concat()
}

fn padded(text: String) -> Vec<u8> {
    let mut bytes = text.into_bytes();
    bytes.resize(bytes.len().next_multiple_of(4), b' ');
    bytes
}

/// All of them.
pub(crate) fn all() -> Vec<Trap> {
    let mut scene = whole();
    scene["buffers"] = json!([{ "byteLength": 152 }]);
    let (text, binary) = (padded(scene.to_string()), chunk(BIN, &[0; 152]));
    let json = chunk(JSON, &text);
    let good = container(2, None, &[json.clone(), binary.clone()]);
    let mut huge = json.clone();
    huge[..4].copy_from_slice(&u32::MAX.to_le_bytes());
    let files = [
        ("no chunk", container(2, None, &[])),
        ("version 0", container(0, None, &[json.clone(), binary.clone()])),
        ("version 4294967295", container(u32::MAX, None, std::slice::from_ref(&json))),
        ("a length of 4 GiB", container(2, Some(u32::MAX), std::slice::from_ref(&json))),
        ("a length of nothing", container(2, Some(0), std::slice::from_ref(&json))),
        ("a length inside the header", container(2, Some(5), std::slice::from_ref(&json))),
        ("a chunk of 4 GiB", container(2, None, &[huge])),
        ("the binary chunk alone", container(2, None, std::slice::from_ref(&binary))),
        ("chunks the wrong way round", container(2, None, &[binary.clone(), json.clone()])),
        ("two JSON chunks", container(2, None, &[json.clone(), json.clone(), binary.clone()])),
        ("ten thousand empty chunks", container(2, None, &vec![chunk(7, &[]); 10_000])),
        ("no binary chunk", container(2, None, std::slice::from_ref(&json))),
        (
            "a binary chunk that is too short",
            container(2, None, &[json.clone(), chunk(BIN, &[0; 3])]),
        ),
        ("JSON that is none", container(2, None, &[chunk(JSON, b"{{{{"), binary.clone()])),
        ("empty JSON", container(2, None, &[chunk(JSON, b""), binary])),
    ];
    let mut traps: Vec<Trap> =
        files.into_iter().map(|(name, bytes)| Trap::new(format!("GLB: {name}"), bytes)).collect();
    traps.push(Trap::new("GLB: whole", good.clone()));
    for length in [0, 1, 4, 8, 11, 12, 16, 20, 21, 200, good.len() - 1] {
        traps.push(Trap::new(format!("GLB: cut to {length}"), &good[..length]));
    }
    let mut dice = Dice(0xb10b);
    for round in 0..DAMAGED {
        traps.push(Trap::new(format!("GLB: damage {round}"), damaged(&good, &mut dice)));
    }
    traps
}
