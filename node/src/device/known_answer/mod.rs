//! Known answers: units whose sums every device must give, bit for bit, before it gets work. They
//! find wrong results, not only crashes. There is one for each of the kernels that work may use:
//! compact and staged, with and without layers, with and without instances. The CPU's own kernels
//! are compared with sums that are stored here, and devices with those of the CPU. Runs nothing on
//! a device.

mod host;
mod scene;
mod test;
mod units;

pub use host::AnswerError;
pub(super) use host::check_host;
pub(super) use test::KnownAnswer;
pub(super) use units::Kind;
