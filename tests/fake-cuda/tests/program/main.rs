//! Ordinary programs, written with cudarc and nvml-wrapper, on the fake driver: pictures, order,
//! faults, health. Every test runs in a process of its own, since a driver's state is the
//! process's.

mod faults;
mod fixture;
mod health;
mod order;
mod picture;
