//! The core from outside: inputs and the time go in; steps and what it then says are judged. Whole
//! farms are in the simulator.

mod after;
mod allocations;
mod bad_node;
mod copies;
mod costs;
mod device_waits;
mod devices;
mod epochs;
mod explain;
mod explain_states;
mod exposure;
mod failures;
mod fair;
mod finishing;
mod frames;
mod job_inputs;
mod journal;
mod kernels;
mod moves;
mod nodes;
mod not_before;
mod parts;
mod pause;
mod presets;
mod replica;
mod retry;
mod rounds;
mod selected;
mod shares;
mod small_farm;
mod splitter;
mod storage;
mod time_limit;
mod verify;
mod waiting;
