//! The terminal that a picture is for: its size, and which protocols it says it knows.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcgetwinsize, tcsetattr};
use std::fs::{File, OpenOptions};
use std::io::{IsTerminal, Read, Write};
use std::time::{Duration, Instant};

/// A terminal's size where nothing is known of it.
const COLUMNS: u16 = 80;
const ROWS: u16 = 24;
/// Pixels of a character, likewise.
const CELL: (u32, u32) = (10, 20);
/// Longest wait for a terminal's answer: a slow line's.
const ANSWER_WITHIN: Duration = Duration::from_millis(700);
/// Bytes of an answer at most.
const ANSWER_MAX: usize = 4096;
/// Asks for kitty's graphics with a picture of one pixel that is not shown, and then what kind of
/// terminal this is, which every one answers.
const QUESTION: &str = "\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\\x1b[c";

/// A size in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cells {
    pub(crate) columns: u32,
    pub(crate) rows: u32,
}

/// How large a terminal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// Characters.
    pub(crate) cells: Cells,
    /// Pixels of a character.
    pub(crate) cell: (u32, u32),
}

impl Room {
    /// The room of the terminal on standard output, or what is usual where it is none. A line stays
    /// free for what is written next. `columns`: as many instead, with any number of rows.
    pub(crate) fn find(columns: Option<u16>) -> Self {
        let size = tcgetwinsize(std::io::stdout()).ok().filter(|size| size.ws_col > 0);
        let (across, down) = size.map_or((COLUMNS, ROWS), |size| (size.ws_col, size.ws_row));
        let cell = size.map_or(CELL, |size| {
            let edge = |pixels: u16, count: u16| u32::from(pixels) / u32::from(count.max(1));
            let cell = (edge(size.ws_xpixel, size.ws_col), edge(size.ws_ypixel, size.ws_row));
            if cell.0 > 0 && cell.1 > 0 { cell } else { CELL }
        });
        let cells = match columns {
            // As high as it gets: one looks at it by scrolling.
            Some(columns) => Cells { columns: columns.into(), rows: u16::MAX.into() },
            None => {
                Cells { columns: across.into(), rows: u32::from(down).saturating_sub(2).max(1) }
            }
        };
        Self { cells, cell }
    }

    /// Pixels across and down.
    pub(crate) fn pixels(&self) -> (u32, u32) {
        (self.cells.columns * self.cell.0, self.cells.rows * self.cell.1)
    }

    /// The characters that a picture of so many pixels takes.
    pub(crate) fn taken(&self, (width, height): (u32, u32)) -> Cells {
        let count = |pixels: u32, edge: u32| pixels.div_ceil(edge).max(1);
        Cells { columns: count(width, self.cell.0), rows: count(height, self.cell.1) }
    }
}

/// What a terminal says it can show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) kitty: bool,
    pub(crate) sixel: bool,
}

impl Known {
    /// Asks the terminal on standard output; nothing where it is none, or does not answer.
    pub(crate) fn ask() -> Self {
        if !std::io::stdout().is_terminal() {
            return Self::default();
        }
        let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty");
        let answer = terminal.and_then(|mut terminal| Ok(answer(&mut terminal)?));
        Self::of(&answer.unwrap_or_default())
    }

    /// Reads an answer: `ESC _ G i=31;OK ESC \` of who knows kitty's graphics, then
    /// `ESC [ ? 62 ; 4 ; … c`, where 4 stands for sixels.
    fn of(answer: &str) -> Self {
        let kind = answer.rsplit_once("\x1b[?").and_then(|(_, rest)| rest.split_once('c'));
        let sixel = kind.is_some_and(|(numbers, _)| numbers.split(';').any(|one| one == "4"));
        Self { kitty: answer.contains("_Gi=31;OK"), sixel }
    }
}

/// Asks with the terminal's echo and lines off, and sets it back.
fn answer(terminal: &mut File) -> rustix::io::Result<String> {
    let before = tcgetattr(&*terminal)?;
    let mut quiet = before.clone();
    quiet.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
    tcsetattr(&*terminal, OptionalActions::Flush, &quiet)?;
    let answer = heard(terminal);
    tcsetattr(&*terminal, OptionalActions::Flush, &before)?;
    answer
}

fn heard(terminal: &mut File) -> rustix::io::Result<String> {
    let failed = |error: std::io::Error| {
        rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO)
    };
    terminal.write_all(QUESTION.as_bytes()).map_err(failed)?;
    let (mut heard, asked) = (Vec::new(), Instant::now());
    while heard.len() < ANSWER_MAX && !is_whole(&heard) {
        let Some(left) = ANSWER_WITHIN.checked_sub(asked.elapsed()) else { break };
        let left = Timespec { tv_sec: 0, tv_nsec: left.subsec_nanos().into() };
        let mut ready = [PollFd::new(&*terminal, PollFlags::IN)];
        if poll(&mut ready, Some(&left))? == 0 {
            break;
        }
        let mut piece = [0; 256];
        match terminal.read(&mut piece).map_err(failed)? {
            0 => break,
            count => heard.extend_from_slice(&piece[..count]),
        }
    }
    Ok(String::from_utf8_lossy(&heard).into_owned())
}

/// The terminal has said what kind it is, which is the last that was asked.
fn is_whole(heard: &[u8]) -> bool {
    let start = heard.windows(3).rposition(|bytes| bytes == b"\x1b[?");
    start.is_some_and(|start| heard[start..].contains(&b'c'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_terminals_are_read() {
        for (answer, kitty, sixel) in [
            ("\x1b_Gi=31;OK\x1b\\\x1b[?62;c", true, false),
            ("\x1b[?62;4;6;22c", false, true),
            ("\x1b_Gi=31;OK\x1b\\\x1b[?62;4c", true, true),
            ("\x1b_Gi=31;ENOENT:no\x1b\\\x1b[?64;1;14;24c", false, false),
            ("", false, false),
            ("\x1b[?4", false, false),
        ] {
            assert_eq!(Known::of(answer), Known { kitty, sixel }, "{answer:?}");
        }
        assert!(is_whole(b"\x1b[?62;c") && !is_whole(b"\x1b[?62;") && !is_whole(b"c"));
    }

    #[test]
    fn a_picture_takes_whole_characters() {
        let room = Room { cells: Cells { columns: 80, rows: 22 }, cell: (10, 20) };
        assert_eq!(room.pixels(), (800, 440));
        assert_eq!(room.taken((401, 200)), Cells { columns: 41, rows: 10 });
    }
}
