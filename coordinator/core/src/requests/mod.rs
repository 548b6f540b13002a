//! What users and operators ask for: submit, cancel, pause, retry and forget jobs.

mod forget;
mod jobs;
mod pause;
mod retry_frames;
