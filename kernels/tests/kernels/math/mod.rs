//! Mathematics: our own functions, the numbers that samples are made of, and drawing by a pdf.

pub(crate) mod mathematics;
pub(crate) mod points;
pub(crate) mod sampling;
