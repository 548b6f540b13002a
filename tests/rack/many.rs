//! Many units: the device's memory is afterwards what it was.

use crate::rack::fixture::{Stand, device, rendered_on_cpu};
use tessera_fake_cuda::{Config, Device};

#[test]
fn a_thousand_units_leave_the_memory_as_it_was() {
    let many =
        ["--size", "8x8", "--spp", "1000", "--depth", "2", "--tile", "8", "--unit-samples", "1"];
    let stand = Stand::start(&Config::of(2, Device { pause_micros_per_launch: 0, ..device() }));
    (0..2).for_each(|index| stand.wait_until(index, "ready"));
    // Workers keep the last scenes, and the workspaces of the most units that they had at a time.
    (0..2).for_each(|_| drop(stand.render(&many)));
    let held = || [0, 1].map(|index| stand.rack.counts(index).used_bytes);
    let before = held();
    assert_eq!(stand.render(&many), rendered_on_cpu(&many), "{}", stand.farm.logs());
    // A plan may have had some more units than any before: far less than the smallest allocation
    // for every unit.
    let after = held();
    let grown = before.iter().zip(after).map(|(before, after)| after.saturating_sub(*before)).max();
    assert!(grown < Some(128 << 10), "{before:?} became {after:?}");
    let mut stand = stand;
    assert!(stand.farm.drain_node(0), "the node did not end by itself\n{}", stand.farm.logs());
    // The node ends its workers by a kill and does not wait for them.
    let held = || [0, 1].map(|index| stand.rack.counts(index).used_bytes);
    stand.farm.wait_for("all memory to be given back", |_| held() == [0, 0]);
}
