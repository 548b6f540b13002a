//! Rooms of many bright lamps: pictures in which the last place of a lamp's chance is seen, in the plain and in the layered kernels. Made
//! for the mutation check; knows no machine.

use crate::scenes::{Case, Noise, bright, coat, look};
use crate::support::*;
use tessera_kernels::CheckedScene;
use tessera_layout::*;

/// Rooms of few lamps, one node of the tree, and of many, from several seeds; all also with a coat on every third material.
pub(crate) fn all(size: u32) -> Vec<Case> {
    let unit = UnitParams { aovs: 15, ..whole(size, size, 2, 3) };
    let rooms = [("five lamps", 5), ("eight lamps", 8), ("sixty lamps", 60)];
    let plain = rooms.map(|(name, lamps)| Case { name, scene: room(lamps), unit });
    let coated = rooms.map(|(name, lamps)| Case { name, scene: coat(&room(lamps)), unit });
    plain.into_iter().chain(coated).collect()
}

/// A floor and panes about it, lamps of all kinds above and among them.
fn room(lamps: u32) -> CheckedScene {
    let mut noise = Noise(lamps);
    let mut builder = Builder::default();
    let floor = builder.add_material(material([0.7, 0.6, 0.5], 0.4, 0.5));
    let wall = builder.add_material(material([0.5, 0.6, 0.7], 0.0, 0.8));
    let mut glow = material([0.2; 3], 0.0, 1.0);
    glow.emission = [9.0, 8.0, 7.0];
    let glow = builder.add_material(glow);
    builder.quad([[-3.0, -1.0, 3.0], [3.0, -1.0, 3.0], [3.0, -1.0, -3.0], [-3.0, -1.0, -3.0]], floor);
    builder.quad([[-3.0, -1.0, -2.0], [3.0, -1.0, -2.0], [3.0, 3.0, -2.4], [-3.0, 3.0, -2.4]], wall);
    builder.quad([[-1.0, -1.0, 0.5], [0.2, -1.0, 0.1], [0.2, 0.2, 0.0], [-1.0, 0.3, 0.6]], wall);
    for index in 0..lamps {
        let place = [4.0 * noise.unit() - 2.0, 2.5 * noise.unit() - 0.5, 4.0 * noise.unit() - 1.8];
        let power = f64::from(0.2 + 3.0 * noise.unit());
        if index % 4 == 3 {
            let [x, y, z] = place;
            let shape = [[x, y, z], [x + 0.2, y, z + 0.03], [x + 0.2, y + 0.02, z + 0.2], [x, y, z + 0.2]];
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
    builder.camera = look([0.0, 0.1, 4.4]);
    bright(builder)
}
