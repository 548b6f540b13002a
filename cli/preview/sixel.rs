//! A picture as sixels: bands of six rows, each of them one run of characters for every colour in
//! it (VT330/VT340 Programmer Reference Manual, volume 2, chapter 14).

use color_quant::NeuQuant;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Colours of a picture; a terminal has so many registers.
const COLORS: usize = 256;
/// Every so manieth pixel is looked at when the colours are chosen: 1 is best, 30 fastest.
const SAMPLING: i32 = 3;
const BAND_ROWS: usize = 6;
/// Shorter runs are written out.
const RUN_MIN: usize = 4;

/// The characters that show a picture, with the line end after it.
pub(crate) fn text((width, height): (u32, u32), rgb: &[u8]) -> String {
    let rgba: Vec<u8> = rgb.chunks_exact(3).flat_map(|p| [p[0], p[1], p[2], 255]).collect();
    let palette = NeuQuant::new(SAMPLING, COLORS, &rgba);
    // A palette has at most 256 colours.
    let places: Vec<u8> = rgba.chunks_exact(4).map(|p| palette.index_of(p) as u8).collect();
    let mut text = format!("\x1bP0;1;0q\"1;1;{width};{height}");
    let used: BTreeSet<u8> = places.iter().copied().collect();
    let colors = palette.color_map_rgb();
    for place in used {
        let at = usize::from(place) * 3;
        let [r, g, b] = [0, 1, 2].map(|channel| percent(colors[at + channel]));
        // Writing to a string does not fail.
        let _ = write!(text, "#{place};2;{r};{g};{b}");
    }
    let width = width.max(1) as usize;
    for band in places.chunks(width * BAND_ROWS) {
        write_band(&mut text, band, width);
    }
    text += "\x1b\\\n";
    text
}

/// Rounded to the percent, which is what a register holds.
fn percent(value: u8) -> u32 {
    (u32::from(value) * 100 + 127) / 255
}

/// Writes one run of sixels for each colour of a band, and the end of the line.
fn write_band(text: &mut String, band: &[u8], width: usize) {
    let used: BTreeSet<u8> = band.iter().copied().collect();
    for (count, place) in used.iter().enumerate() {
        if count > 0 {
            text.push('$');
        }
        let _ = write!(text, "#{place}");
        let sixel = |x: usize| {
            let is_it = |row: usize| band.get(row * width + x) == Some(place);
            (0..BAND_ROWS).filter(|row| is_it(*row)).map(|row| 1u8 << row).sum::<u8>()
        };
        let mut x = 0;
        while x < width {
            let bits = sixel(x);
            let end = (x + 1..width).find(|next| sixel(*next) != bits).unwrap_or(width);
            // What is empty to the right need not be written.
            if bits != 0 || end < width {
                write_run(text, char::from(b'?' + bits), end - x);
            }
            x = end;
        }
    }
    text.push('-');
}

fn write_run(text: &mut String, character: char, count: usize) {
    if count < RUN_MIN {
        (0..count).for_each(|_| text.push(character));
    } else {
        let _ = write!(text, "!{count}{character}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws what a terminal would: percents of each pixel, black where nothing is drawn.
    fn drawn(text: &str, (width, height): (usize, usize)) -> Vec<[u32; 3]> {
        let body = text.strip_prefix("\x1bP0;1;0q\"1;1;").unwrap().trim_end();
        let body = body.strip_suffix("\x1b\\").unwrap();
        let body = body.strip_prefix(&format!("{width};{height}")).unwrap();
        let mut pixels = vec![[0; 3]; width * height];
        let (mut registers, mut color, mut count) = (vec![[0; 3]; COLORS], 0, 1);
        let (mut x, mut y) = (0, 0);
        let mut rest = body;
        while let Some(character) = rest.chars().next() {
            rest = &rest[1..];
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(rest.len());
            match character {
                '#' => {
                    let numbers: Vec<u32> =
                        rest[..end].split(';').map(|number| number.parse().unwrap()).collect();
                    color = numbers[0] as usize;
                    if let [_, kind, r, g, b] = numbers[..] {
                        assert!(kind == 2 && r.max(g).max(b) <= 100);
                        registers[color] = [r, g, b];
                    }
                    rest = &rest[end..];
                }
                '!' => {
                    count = rest[..end].parse().unwrap();
                    rest = &rest[end..];
                }
                '$' => x = 0,
                '-' => (x, y) = (0, y + BAND_ROWS),
                '?'..='~' => {
                    let bits = character as u8 - b'?';
                    for _ in 0..std::mem::replace(&mut count, 1) {
                        for row in (0..BAND_ROWS).filter(|row| bits >> row & 1 == 1) {
                            pixels[(y + row) * width + x] = registers[color];
                        }
                        x += 1;
                    }
                }
                other => panic!("{other:?}"),
            }
        }
        pixels
    }

    #[test]
    fn a_picture_of_few_colours_is_drawn_as_it_is() {
        let (width, height) = (41, 20);
        let bars = [[255, 255, 255], [255, 0, 0], [0, 0, 255], [0, 0, 0]];
        let color = |x: usize, y: usize| bars[(x / 11 + y / 7) % 4];
        let of = |at: usize| color(at % width, at / width);
        let rgb: Vec<u8> = (0..width * height).flat_map(of).collect();
        let text = text((41, 20), &rgb);
        for (at, pixel) in drawn(&text, (width, height)).iter().enumerate() {
            for (shown, wanted) in pixel.iter().zip(of(at)) {
                assert!(shown.abs_diff(percent(wanted)) <= 3, "{at}: {pixel:?}");
            }
        }
        assert!(text.len() < 2000, "runs are written as such: {}", text.len());
    }
}
