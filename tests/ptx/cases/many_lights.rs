//! Rooms of many bright lamps: pictures in which the last place of a lamp's chance is seen, in the
//! plain and in the layered kernels. Made for the mutation check; knows no machine.

use tessera_kernels::CheckedScene;
use tessera_layout::*;
use tessera_support::builder::*;
use tessera_support::scenes::{Case, Noise, bright, coat, look};

/// Rooms of few lamps, one node of the tree, and of many; and of lamps that shine one way. All also
/// with a coat on some materials.
pub(crate) fn all(size: u32) -> Vec<Case> {
    let unit = UnitParams { aovs: 15, ..whole(size, size, 2, 3) };
    let rooms = [("five lamps", room(5)), ("eight lamps", room(8)), ("sixty lamps", room(60))];
    let both = rooms.into_iter().flat_map(|(name, scene)| [(name, coat(&scene, 3)), (name, scene)]);
    both.map(|(name, scene)| Case { name, scene, unit }).chain(one_way(8..11, size)).collect()
}

/// Rooms of lamps that shine about one way, of so many seeds: plain, with a coat on the floor, and
/// with one on all panes that shine as well.
pub(crate) fn one_way(seeds: std::ops::Range<u32>, size: u32) -> Vec<Case> {
    let unit = UnitParams { aovs: 15, ..whole(size, size, 2, 3) };
    let rooms = seeds.map(one_way_room).flat_map(|scene| [coat(&scene, 2), coat(&scene, 3), scene]);
    rooms.map(|scene| Case { name: "lamps of one way", scene, unit }).collect()
}

/// By turns eight lamps, which are the eight parts of the tree's only node, and two hundred, whose
/// groups have narrow cones of directions; and by turns small panes and spots, and panes so large
/// that many a ray meets them and many a surface lies within the sphere about one.
fn one_way_room(seed: u32) -> CheckedScene {
    let mut noise = Noise(seed);
    let mut builder = bare_room();
    let mut glow = material([0.2; 3], 0.0, 1.0);
    glow.emission = [9.0, 8.0, 7.0];
    let glow = builder.add_material(glow);
    let way = unit(noise.point(1.0));
    let (lamps, large) = if seed.is_multiple_of(2) { (8, 2.5) } else { (200, 0.6) };
    let all_large = seed & 2 != 0;
    for index in 0..lamps {
        let centre = [4.0 * noise.unit() - 2.0, 2.0 * noise.unit(), 3.0 * noise.unit() - 1.2];
        let power = f64::from(0.5 + noise.unit());
        let aside = noise.point(0.4);
        let direction = unit(std::array::from_fn(|axis| way[axis] + aside[axis]));
        if all_large || index % 2 == 0 {
            let size = noise.between(0.05, if all_large { large } else { 0.2 * large });
            let first = builder.quad(facing(centre, direction, size), glow);
            builder.emit(first, power);
            continue;
        }
        let mut lamp = light(LightKind::Spot, [1.0, 0.8, 0.6]);
        (lamp.position, lamp.direction) = (centre, direction);
        (lamp.spot_scale, lamp.spot_offset) = (1.4, 0.1);
        builder.lights.push((lamp, power));
    }
    bright(builder)
}

/// Corners of a square with that normal.
fn facing(centre: [f32; 3], normal: [f32; 3], size: f32) -> [[f32; 3]; 4] {
    let [x, y, z] = normal;
    let right = unit([y + 0.1, -x, 0.3 * z]);
    let up = unit([
        y * right[2] - z * right[1],
        z * right[0] - x * right[2],
        x * right[1] - y * right[0],
    ]);
    let corner = |a: f32, b: f32| {
        std::array::from_fn(|axis| centre[axis] + size * (a * right[axis] + b * up[axis]))
    };
    [corner(0.0, 0.0), corner(1.0, 0.0), corner(1.0, 1.0), corner(0.0, 1.0)]
}

/// A floor and panes about it, lamps of all kinds above and among them.
fn room(lamps: u32) -> CheckedScene {
    let mut noise = Noise(lamps);
    let mut builder = bare_room();
    let mut glow = material([0.2; 3], 0.0, 1.0);
    glow.emission = [9.0, 8.0, 7.0];
    let glow = builder.add_material(glow);
    for index in 0..lamps {
        let place = [4.0 * noise.unit() - 2.0, 2.5 * noise.unit() - 0.5, 4.0 * noise.unit() - 1.8];
        let power = f64::from(0.2 + 3.0 * noise.unit());
        if index % 4 == 3 {
            let [x, y, z] = place;
            let shape =
                [[x, y, z], [x + 0.2, y, z + 0.03], [x + 0.2, y + 0.02, z + 0.2], [x, y, z + 0.2]];
            let first = builder.quad(shape, glow);
            builder.emit(first, 0.5 * power);
            builder.emit(first + 1, 0.5 * power);
            continue;
        }
        let kind = if index % 4 == 2 { LightKind::Spot } else { LightKind::Point };
        let mut lamp = light(kind, [noise.unit() + 0.5, noise.unit() + 0.5, noise.unit() + 0.5]);
        (lamp.position, lamp.direction) = (place, [0.28, -0.96, 0.0]);
        (lamp.spot_scale, lamp.spot_offset) = (1.7, -0.2);
        builder.lights.push((lamp, power));
    }
    bright(builder)
}

/// A floor, a wall, a pane before them, another wall behind who looks at them.
fn bare_room() -> Builder {
    let mut builder = Builder::default();
    let floor = builder.add_material(material([0.7, 0.6, 0.5], 0.4, 0.5));
    let wall = builder.add_material(material([0.5, 0.6, 0.7], 0.0, 0.8));
    builder
        .quad([[-3.0, -1.0, 3.0], [3.0, -1.0, 3.0], [3.0, -1.0, -3.0], [-3.0, -1.0, -3.0]], floor);
    builder
        .quad([[-3.0, -1.0, -2.0], [3.0, -1.0, -2.0], [3.0, 3.0, -2.4], [-3.0, 3.0, -2.4]], wall);
    builder.quad([[-1.0, -1.0, 0.5], [0.2, -1.0, 0.1], [0.2, 0.2, 0.0], [-1.0, 0.3, 0.6]], wall);
    builder.quad([[3.0, -1.0, 5.0], [-3.0, -1.0, 5.0], [-3.0, 3.0, 5.4], [3.0, 3.0, 5.4]], wall);
    builder.camera = look([0.0, 0.1, 4.4]);
    builder
}
