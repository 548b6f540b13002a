//! Media within media and bodies that overlap: what a path is inside of, and which surfaces it
//! sees.

use crate::surface::layered_scenes::CLEAR;
use tessera_layout::*;
use tessera_support::builder::*;

const ABSORPTIONS: [[f32; 3]; 4] =
    [[0.5, 0.0, 0.0], [0.0, 0.7, 0.0], [0.0, 0.0, 0.9], [0.3, 0.3, 0.3]];

/// The mean of each channel, with more scatterings than there are surfaces on the way.
fn seen(builder: Builder, samples: u32) -> [f64; 3] {
    let unit = whole(4, 4, samples, 24);
    let means = means(&builder.finish(), &unit);
    [0, 1, 2].map(|channel| channel_mean(&means, &unit, channel))
}

/// A slab across the camera's way: absorbs and bends nothing.
struct Slab {
    /// From and to.
    z: [f32; 2],
    /// Of [`ABSORPTIONS`].
    absorption: usize,
    priority: i32,
}

/// What a white sky looks like through slabs.
fn through(slabs: &[Slab]) -> [f64; 3] {
    let mut builder = Builder::default();
    let air = Material { ior: 1.0, ..material([1.0; 3], 0.0, 0.0) };
    for slab in slabs {
        let inside = Medium {
            absorption: ABSORPTIONS[slab.absorption],
            priority: slab.priority,
            ..Medium::GLASS
        };
        let number = builder.add_closed(air, CLEAR, inside);
        let [from, to] = slab.z;
        builder.quad([[-1.0, -1.0, to], [1.0, -1.0, to], [1.0, 1.0, to], [-1.0, 1.0, to]], number);
        builder.quad(
            [[1.0, -1.0, from], [-1.0, -1.0, from], [-1.0, 1.0, from], [1.0, 1.0, from]],
            number,
        );
    }
    builder.constant([1.0; 3]);
    builder.camera = camera_at([0.0, 0.0, 4.0], CameraKind::Orthographic, 0.02);
    seen(builder, 64)
}

/// What is left after so many metres in each medium.
fn left(metres: [f64; 4]) -> [f64; 3] {
    [0, 1, 2].map(|channel| {
        let absorbed =
            ABSORPTIONS.iter().zip(metres).map(|(of, metres)| f64::from(of[channel]) * metres);
        (-absorbed.sum::<f64>()).exp()
    })
}

fn assert_same(seen: [f64; 3], want: [f64; 3], what: &str) {
    for (seen, want) in seen.into_iter().zip(want) {
        assert!((seen - want).abs() < 1e-4, "{what}: {seen}, not {want}");
    }
}

/// Two slabs share a metre. It belongs to the one of the higher priority from both sides, and
/// without priorities to the one that is entered last.
#[test]
fn overlaps_belong_to_the_medium_of_higher_priority() {
    for (far, near, far_has_it) in
        [(1, 0, true), (0, 1, false), (0, 0, true), (-3, -7, true), (-7, 1000, false)]
    {
        let slabs = [
            Slab { z: [-2.0, 0.5], absorption: 0, priority: far },
            Slab { z: [-0.5, 1.0], absorption: 1, priority: near },
        ];
        let want = if far_has_it { left([2.5, 0.5, 0.0, 0.0]) } else { left([1.5, 1.5, 0.0, 0.0]) };
        assert_same(through(&slabs), want, &format!("priorities {far} and {near}"));
    }
}

/// Three bodies within each other and one that overlaps all of them, of every order of priorities:
/// each metre belongs to one of them.
#[test]
fn four_media_at_once_are_kept_apart() {
    let orders =
        [[0, 0, 0, 0], [0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1], [1, 3, 0, 2], [1, 1, 2, 2]];
    let bodies = [[-2.0, 2.0], [-1.5, 1.5], [-1.0, 1.0], [-0.5, 3.0]];
    for order in orders {
        let slabs: Vec<Slab> = (0..4)
            .map(|at| Slab { z: bodies[at].map(|z| z as f32), absorption: at, priority: order[at] })
            .collect();
        let mut metres = [0.0; 4];
        for piece in (-8..12).map(|piece| (f64::from(piece) + 0.5) * 0.25) {
            let around = (0..4).filter(|at| (bodies[*at][0]..bodies[*at][1]).contains(&piece));
            // The camera is at +Z, so what begins at the least Z there was entered last.
            let order_of = |at: &usize| (f64::from(order[*at]), -bodies[*at][1]);
            if let Some(owner) =
                around.max_by(|a, b| order_of(a).partial_cmp(&order_of(b)).unwrap())
            {
                metres[owner] += 0.25;
            }
        }
        assert_same(through(&slabs), left(metres), &format!("{order:?}"));
    }
}

/// A ray that meets a ball of glass beside its middle is bent by 2 (asin b - asin (b / n)). A
/// denser ball in its way bends it too, unless the glass comes before it.
#[test]
fn a_surface_in_a_medium_of_higher_priority_is_not_there() {
    const BESIDE: f64 = 0.4;
    let band = 2.0 * (BESIDE.asin() - (BESIDE / 1.5).asin());
    let look = |priority: i32| {
        let mut builder = Builder::default();
        let inside = Medium { priority: 1, ..Medium::GLASS };
        let glass = builder.add_closed(material([1.0; 3], 0.0, 0.0), CLEAR, inside);
        let coat = Layers { clearcoat: 1.0, ..CLEAR };
        let dense = Material { ior: 2.2, ..material([0.5; 3], 0.0, 0.6) };
        let dense = builder.add_closed(dense, coat, Medium { priority, ..Medium::GLASS });
        builder.sphere(256, glass);
        let first = builder.triangles.len();
        builder.sphere(64, dense);
        builder.shrink(first, 0.6, [0.0; 3]);
        builder.map(2048, 4, |column, _| {
            let bent = std::f64::consts::TAU * (1.0 - (f64::from(column) + 0.5) / 2048.0);
            [f32::from((bent - band).abs() < 0.012); 3]
        });
        builder.camera = camera_at([BESIDE as f32, 0.0, 4.0], CameraKind::Orthographic, 0.001);
        seen(builder, 256)
    };
    let hidden = look(0);
    assert!(hidden.iter().all(|share| *share > 0.8), "{hidden:?}");
    for priority in [1, 2] {
        let shown = look(priority);
        assert!(shown.iter().all(|share| *share < 0.2), "priority {priority}: {shown:?}");
    }
}

/// A drink that reaches into the wall of its glass looks as one that ends where the glass begins.
#[test]
fn a_liquid_that_overlaps_its_glass_looks_as_one_that_fits() {
    let look = |overlaps: bool| {
        let mut builder = Builder::default();
        let of_glass = Medium { priority: 1, ..Medium::GLASS };
        let glass = builder.add_closed(material([1.0; 3], 0.0, 0.0), CLEAR, of_glass);
        let of_liquid = Medium { absorption: [0.2, 0.5, 1.5], ..Medium::GLASS };
        let of_liquid = Medium { priority: if overlaps { 0 } else { 1 }, ..of_liquid };
        let liquid = Material { ior: 1.33, ..material([1.0; 3], 0.0, 0.0) };
        let liquid = builder.add_closed(liquid, CLEAR, of_liquid);
        builder.sphere(48, glass);
        let first = builder.triangles.len();
        if overlaps {
            // The wall's inner side, turned to the liquid.
            builder.sphere(48, glass);
            builder.shrink(first, -0.7, [0.0; 3]);
            let first = builder.triangles.len();
            builder.sphere(48, liquid);
            builder.shrink(first, 0.85, [0.0; 3]);
        } else {
            builder.sphere(48, liquid);
            builder.shrink(first, 0.7, [0.0; 3]);
        }
        builder.map(16, 8, |x, y| if (x + y) % 3 == 0 { [1.0, 0.5, 0.2] } else { [0.1, 0.3, 1.0] });
        builder.camera = camera_at([0.25, 0.3, 4.0], CameraKind::Orthographic, 0.1);
        seen(builder, 2048)
    };
    let (overlaps, fits) = (look(true), look(false));
    for (overlaps, fits) in overlaps.into_iter().zip(fits) {
        assert!((overlaps / fits - 1.0).abs() < 0.02, "{overlaps} {fits}");
    }
}

/// A sphere of the same index inside of glass bends nothing: with it and without it the picture is
/// the same but for noise.
#[test]
fn a_nested_medium_of_the_same_index_is_not_seen() {
    let seen = |nested: bool| {
        let mut builder = Builder::default();
        let glass = builder.add_closed(material([1.0; 3], 0.0, 0.0), CLEAR, Medium::GLASS);
        builder.sphere(48, glass);
        if nested {
            let inner = builder.add_closed(material([1.0; 3], 0.0, 0.0), CLEAR, Medium::GLASS);
            let first = builder.triangles.len();
            builder.sphere(48, inner);
            builder.shrink(first, 0.5, [0.0; 3]);
        }
        builder.map(16, 8, |_, y| if y < 4 { [1.0, 0.5, 0.0] } else { [0.0, 0.25, 1.0] });
        builder.camera = camera_at([0.0, 0.3, 4.0], CameraKind::Orthographic, 0.1);
        seen(builder, 1024)
    };
    let (with, without) = (seen(true), seen(false));
    for (with, without) in with.into_iter().zip(without) {
        assert!((with - without).abs() < 0.03, "{with} {without}");
    }
}
