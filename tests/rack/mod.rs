//! Rack: farms of real processes whose GPUs are fake: any number of devices, each fault, mixed
//! speeds, mixed frames. The bits are those of the CPU, and nothing but the faulty device is lost.

mod denoise;
mod devices;
mod faults;
mod fixture;
mod makespan;
mod many;
mod mixed;
mod throttle;
