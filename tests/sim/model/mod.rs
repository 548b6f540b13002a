//! The second bookkeeping: the farm as its records tell it, by rules of the simulator's own, and
//! what units, parts and rounds are, worked out anew.

pub(crate) mod books;
pub(crate) mod film;
pub(crate) mod finishing;
pub(crate) mod ledger;
pub(crate) mod parts;
pub(crate) mod rounds;
pub(crate) mod tasks;
