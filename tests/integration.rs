//! The integration tests of the product: the command line, farms of real processes, fake GPUs,
//! pictures, the proof of bits. Each folder says what it owns.

mod cli;
mod compute;
mod device;
mod farm;
mod hostile;
#[cfg(feature = "otlp")]
mod otlp;
mod page;
mod ptx;
mod python;
mod rack;
mod render;
