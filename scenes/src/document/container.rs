//! The container of a glTF file: the JSON in it, and the binary chunk of a GLB. Does not interpret
//! the JSON.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

const GLB_MAGIC: &[u8; 4] = b"glTF";
const GLB_HEADER_BYTES: usize = 12;
const GLB_CHUNK_JSON: u32 = 0x4E4F_534A;
const GLB_CHUNK_BIN: u32 = 0x004E_4942;
/// Most chunks of a file. A usual one has two.
const CHUNKS_MAX: usize = 4096;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Returns the JSON of a file, and its binary chunk if it is a GLB.
pub(super) fn split(bytes: &[u8]) -> Result<(&[u8], Option<&[u8]>), String> {
    if !bytes.starts_with(GLB_MAGIC) {
        return Ok((plain_json(bytes)?, None));
    }
    let read = |at: u64, word: &mut [u8; 8]| {
        word.copy_from_slice(&bytes[at as usize..at as usize + 8]);
        Ok::<_, std::convert::Infallible>(())
    };
    let Ok(chunks) = chunks(bytes.len() as u64, bytes, read);
    let chunks = chunks?;
    let bytes_of = |range: Range<u64>| &bytes[range.start as usize..range.end as usize];
    Ok((without_mark(bytes_of(chunks.json)), chunks.binary.map(bytes_of)))
}

/// Returns the JSON of an open file of this length, and reads nothing else of it.
pub(super) fn read_json(mut file: File, length: u64) -> io::Result<Result<Vec<u8>, String>> {
    let mut head = Vec::new();
    (&mut file).take(GLB_HEADER_BYTES as u64).read_to_end(&mut head)?;
    if !head.starts_with(GLB_MAGIC) {
        (&mut file).take(length.saturating_sub(head.len() as u64)).read_to_end(&mut head)?;
        return Ok(plain_json(&head).map(<[u8]>::to_vec));
    }
    let found = chunks(length, &head, |at, word| {
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(word)
    })?;
    let json = match found {
        Ok(chunks) => chunks.json,
        Err(problem) => return Ok(Err(problem)),
    };
    // It lies within the file, whose length is within the limits.
    let mut bytes = vec![0; (json.end - json.start) as usize];
    file.seek(SeekFrom::Start(json.start))?;
    file.read_exact(&mut bytes)?;
    Ok(Ok(without_mark(&bytes).to_vec()))
}

fn without_mark(json: &[u8]) -> &[u8] {
    json.strip_prefix(BYTE_ORDER_MARK).unwrap_or(json)
}

/// Returns the JSON of a file that is no GLB.
fn plain_json(bytes: &[u8]) -> Result<&[u8], String> {
    let json = without_mark(bytes);
    match json.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => Ok(json),
        _ => Err("it begins neither with `glTF` nor with a JSON object; export it again".into()),
    }
}

/// Where the chunks of a GLB lie in its file.
struct Chunks {
    json: Range<u64>,
    binary: Option<Range<u64>>,
}

/// Finds the chunks of a GLB of `have` bytes (glTF 2.0, §4.4), which begins with `head`. `read`
/// reads eight bytes at a position that is within the file.
fn chunks<E>(
    have: u64,
    head: &[u8],
    mut read: impl FnMut(u64, &mut [u8; 8]) -> Result<(), E>,
) -> Result<Result<Chunks, String>, E> {
    let word = |at: usize| -> Option<u32> {
        Some(u32::from_le_bytes(head.get(at..at + 4)?.try_into().ok()?))
    };
    let (Some(version), Some(length)) = (word(4), word(8)) else {
        return Ok(Err("the file is cut short inside its header; copy it again".into()));
    };
    if version != 2 {
        return Ok(Err(format!(
            "its container has version {version}; only 2 is read, so export it as glTF 2.0"
        )));
    }
    let length = u64::from(length);
    if length > have {
        return Ok(Err(format!(
            "its header says {length} bytes, but only {have} are there; copy it again"
        )));
    }
    let (mut json, mut binary) = (None, None);
    let (mut at, mut bytes, mut count) = (GLB_HEADER_BYTES as u64, [0; 8], 0);
    while at + 8 <= length {
        count += 1;
        if count > CHUNKS_MAX {
            return Ok(Err(format!("it has more than {CHUNKS_MAX} chunks; export it again")));
        }
        read(at, &mut bytes)?;
        let [size, kind] = [0, 4].map(|from| {
            u32::from_le_bytes([bytes[from], bytes[from + 1], bytes[from + 2], bytes[from + 3]])
        });
        let (start, end) = (at + 8, at + 8 + u64::from(size));
        if end > length {
            return Ok(Err(format!(
                "the chunk at byte {at} reaches beyond the end; copy the file again"
            )));
        }
        match kind {
            GLB_CHUNK_JSON if json.is_none() => json = Some(start..end),
            GLB_CHUNK_BIN if binary.is_none() => binary = Some(start..end),
            _ => {}
        }
        at = end.next_multiple_of(4);
    }
    Ok(match json {
        Some(json) => Ok(Chunks { json, binary }),
        None => Err("it has no JSON chunk; export it again".into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn glb(chunks: &[(u32, &[u8])]) -> Vec<u8> {
        let mut body = Vec::new();
        for (kind, bytes) in chunks {
            body.extend((bytes.len() as u32).to_le_bytes());
            body.extend(kind.to_le_bytes());
            body.extend_from_slice(bytes);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        let mut file = GLB_MAGIC.to_vec();
        file.extend(2u32.to_le_bytes());
        file.extend((body.len() as u32 + 12).to_le_bytes());
        file.extend(body);
        file
    }

    fn json_of(bytes: &[u8]) -> Result<Vec<u8>, String> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        read_json(file, bytes.len() as u64).unwrap()
    }

    #[test]
    fn the_json_alone_is_what_splitting_the_whole_file_gives() {
        let json = (GLB_CHUNK_JSON, &b"\xef\xbb\xbf{ }"[..]);
        let binary = (GLB_CHUNK_BIN, &[7; 400][..]);
        let usual = glb(&[json, binary]);
        assert_eq!(split(&usual).unwrap(), (&b"{ }"[..], Some(&[7; 400][..])));
        let mut cut = usual.clone();
        cut.truncate(300);
        let mut long = usual.clone();
        long[12] = 0xff;
        for bytes in [
            usual,
            glb(&[binary, json]),
            glb(&[binary]),
            cut,
            long,
            b"glTF".to_vec(),
            b"\xef\xbb\xbf {\"a\": 1}".to_vec(),
            b"no".to_vec(),
            Vec::new(),
        ] {
            let whole = split(&bytes).map(|(json, _)| json.to_vec());
            assert_eq!(json_of(&bytes), whole, "{bytes:?}");
        }
    }
}
