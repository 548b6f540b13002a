//! Lights: what each gives, how one of many is chosen, and the bound on scattered light.

pub(crate) mod clamp;
pub(crate) mod light_choice;
pub(crate) mod lighting;
