//! Rack: farms of real processes whose GPUs are fake: any number of devices, each fault, mixed
//! speeds, mixed frames. The bits are those of the CPU, and nothing but the faulty device is lost.

mod devices;
mod faults;
#[path = "../farm/harness.rs"]
#[expect(dead_code, reason = "the farm's tests use more of their harness")]
mod harness;
mod makespan;
mod many;
mod mixed;
mod stand;
mod throttle;
