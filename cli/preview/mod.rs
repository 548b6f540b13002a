//! Pictures of jobs for a terminal, and videos of films: scaled down, in the terminal's own
//! colours. Nothing is written but what is shown. `small` scales, `live` gathers live tiles,
//! `blocks`, `kitty` and `sixel` write a picture as characters, `terminal` knows what is understood
//! there, and `video` drives ffmpeg.

pub(crate) mod blocks;
pub(crate) mod finished;
pub(crate) mod kitty;
pub(crate) mod live;
pub(crate) mod sixel;
mod small;
pub(crate) mod terminal;
pub(crate) mod video;

pub(crate) use small::{Area, Small, fitting};
