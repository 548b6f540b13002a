//! A picture by kitty's protocol for graphics: PNG in base64, in pieces of 4,096 characters
//! (<https://sw.kovidgoyal.net/kitty/graphics-protocol/>).

use super::terminal::Cells;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::codecs::png::PngEncoder;
use image::{ExtendedColorType, ImageEncoder, ImageError};
use std::fmt::Write as _;

/// Characters of a piece at most; a multiple of four.
const PIECE_MAX: usize = 4096;

/// The characters that show a picture in so many cells, with the line end after it.
pub(crate) fn text(
    (width, height): (u32, u32),
    rgb: &[u8],
    cells: Cells,
) -> Result<String, ImageError> {
    let mut png = Vec::new();
    PngEncoder::new(&mut png).write_image(rgb, width, height, ExtendedColorType::Rgb8)?;
    let characters = STANDARD.encode(png);
    let pieces: Vec<&str> = pieces(&characters).collect();
    let mut text = String::new();
    for (at, piece) in pieces.iter().enumerate() {
        let more = u8::from(at + 1 < pieces.len());
        // Writing to a string does not fail. The terminal is not to answer (q=2).
        let _ = match at {
            0 => write!(
                text,
                "\x1b_Ga=T,f=100,q=2,c={},r={},m={more};{piece}\x1b\\",
                cells.columns, cells.rows
            ),
            _ => write!(text, "\x1b_Gm={more};{piece}\x1b\\"),
        };
    }
    text.push('\n');
    Ok(text)
}

fn pieces(characters: &str) -> impl Iterator<Item = &str> {
    (0..characters.len())
        .step_by(PIECE_MAX)
        .map(|at| &characters[at..characters.len().min(at + PIECE_MAX)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture;

    #[test]
    fn the_pieces_are_a_png_of_the_picture() {
        let size = (64, 48);
        let noise = |at: u32| (at.wrapping_mul(2_654_435_761) >> 13) as u8;
        let rgb: Vec<u8> = (0..64 * 48 * 3).map(noise).collect();
        let text = text(size, &rgb, Cells { columns: 10, rows: 5 }).unwrap();
        assert!(
            text.starts_with("\x1b_Ga=T,f=100,q=2,c=10,r=5,m=1;") && text.ends_with("\x1b\\\n")
        );
        let mut characters = String::new();
        let commands: Vec<&str> = text.trim_end().split_terminator("\x1b\\").collect();
        for (at, command) in commands.iter().enumerate() {
            let (head, piece) = command.split_once(';').unwrap();
            assert!(head.starts_with("\x1b_G") && piece.len() <= PIECE_MAX, "{head}");
            assert_eq!(head.ends_with("m=1"), at + 1 < commands.len());
            characters += piece;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("picture.png");
        std::fs::write(&path, STANDARD.decode(characters).unwrap()).unwrap();
        let read = picture::read(&path).unwrap();
        assert_eq!((read.width, read.height), size);
        let value = crate::srgb::linear_from_srgb(f64::from(rgb[0]) / 255.0);
        assert!((f64::from(read.pixels[0][0]) - value).abs() < 1e-6);
    }
}
