//! A picture as coloured characters: the upper half block, of which the background is the lower
//! half.

use std::fmt::Write as _;

/// Colours that a terminal knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Palette {
    /// 24 bits.
    Full,
    /// The 256 of xterm.
    Indexed,
}

impl Palette {
    /// What the environment says of the terminal.
    pub(crate) fn of_environment() -> Self {
        let says = |name: &str, words: &[&str]| {
            std::env::var(name).is_ok_and(|value| words.iter().any(|word| value.contains(word)))
        };
        let is_full = says("COLORTERM", &["truecolor", "24bit"])
            || says("TERM", &["direct", "kitty", "ghostty", "alacritty", "wezterm", "foot"]);
        if is_full { Self::Full } else { Self::Indexed }
    }

    fn write(self, text: &mut String, ground: u8, [r, g, b]: [u8; 3]) {
        // Writing to a string does not fail.
        let _ = match self {
            Self::Full => write!(text, "\x1b[{ground};2;{r};{g};{b}m"),
            Self::Indexed => write!(text, "\x1b[{ground};5;{}m", index([r, g, b])),
        };
    }
}

const FOREGROUND: u8 = 38;
const BACKGROUND: u8 = 48;

/// Lines of characters for a picture of so many pixels across, given as R, G and B of each.
pub(crate) fn text(width: u32, rgb: &[u8], palette: Palette) -> String {
    let rows: Vec<&[u8]> = rgb.chunks(width.max(1) as usize * 3).collect();
    let mut text = String::new();
    for pair in rows.chunks(2) {
        let (mut front, mut back) = (None, None);
        for (x, above) in pair[0].chunks_exact(3).enumerate() {
            let above = [above[0], above[1], above[2]];
            if front.replace(above) != Some(above) {
                palette.write(&mut text, FOREGROUND, above);
            }
            // The last line may have no lower half.
            if let Some(&[r, g, b]) = pair.get(1).and_then(|row| row.get(x * 3..x * 3 + 3))
                && back.replace([r, g, b]) != Some([r, g, b])
            {
                palette.write(&mut text, BACKGROUND, [r, g, b]);
            }
            text.push('▀');
        }
        text += "\x1b[0m\n";
    }
    text
}

/// Values of a channel in xterm's cube of 216 colours.
const CUBE: [u8; 6] = [0, 95, 135, 175, 215, 255];

/// The nearest of xterm's 256 colours, of those that users do not change: cube and greys.
fn index(color: [u8; 3]) -> u8 {
    let far = |a: u8, b: u8| u32::from(a.abs_diff(b)).pow(2);
    let distance = |other: [u8; 3]| color.iter().zip(other).map(|(a, b)| far(*a, b)).sum::<u32>();
    let nearest =
        |value: u8| (0..6u8).min_by_key(|step| far(CUBE[usize::from(*step)], value)).unwrap_or(0);
    let steps = color.map(nearest);
    let cube = steps.map(|step| CUBE[usize::from(step)]);
    let grey = |step: u8| 8 + 10 * step;
    let mean = (color.iter().map(|value| u32::from(*value)).sum::<u32>() / 3) as u8;
    let step = (0..24u8).min_by_key(|step| far(grey(*step), mean)).unwrap_or(0);
    match distance([grey(step); 3]) < distance(cube) {
        true => 232 + step,
        false => 16 + 36 * steps[0] + 6 * steps[1] + steps[2],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_rows_are_one_line() {
        let picture = [[255, 0, 0], [255, 0, 0], [0, 0, 255], [0, 255, 0]].concat();
        assert_eq!(
            text(2, &picture, Palette::Full),
            "\x1b[38;2;255;0;0m\x1b[48;2;0;0;255m▀\x1b[48;2;0;255;0m▀\x1b[0m\n"
        );
        // Without a lower half, its background is the terminal's.
        assert_eq!(text(1, &[0, 0, 0], Palette::Indexed), "\x1b[38;5;16m▀\x1b[0m\n");
        assert_eq!(text(1, &[], Palette::Full), "");
    }

    #[test]
    fn colours_are_the_nearest_ones() {
        let all = [[0, 0, 0], [255, 255, 255], [255, 0, 0], [95, 135, 175], [128, 128, 128]];
        assert_eq!(all.map(index), [16, 231, 196, 67, 244]);
    }
}
