//! How fast the machine is: a figure on stderr, no assertion.

use crate::{Rig, parameters};
use tessera_ptx::Settings;

#[test]
fn plain_code_runs() {
    let mut rig = Rig::new(Settings::default());
    let inputs: Vec<u32> = (0..32).map(|at| (at as f32 * 0.03).to_bits()).collect();
    let (from, to) = (rig.words(&inputs), rig.words(&[0; 8]));
    let start = std::time::Instant::now();
    let block = parameters(&[(from, 8), (to, 8), (200_000, 4)]);
    let stats = rig.run("plain", [1, 1, 1], [8, 1, 1], &block).expect("it runs");
    let rate = stats.steps as f64 / 1e6 / start.elapsed().as_secs_f64();
    eprintln!("{} M instructions, {rate:.0} M/s", stats.steps / 1_000_000);
}
