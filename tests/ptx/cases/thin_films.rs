//! Films all over, so that what a film does is most of the picture. Made for the mutation check;
//! knows no machine.

use tessera_layout::*;
use tessera_support::builder::*;
use tessera_support::layers::ball;
use tessera_support::scenes::{Case, bright, look};

pub(crate) fn thin_films(size: u32) -> Case {
    Case {
        name: "thin films",
        scene: scene(),
        unit: UnitParams { aovs: 15, ..whole(size, size, 3, 4) },
    }
}

/// Films so thin that all of their colours count, on a floor and on balls, bright and dark, under a
/// lamp and a sky.
fn scene() -> tessera_kernels::CheckedScene {
    let mut builder = Builder::default();
    let film = |thickness, ior| Layers {
        iridescence: 0.9,
        iridescence_ior: ior,
        iridescence_thickness_max: thickness,
        ..Layers::NONE
    };
    let looks = [
        builder.add_layered(material([0.5, 0.4, 0.3], 0.5, 0.4), film(95.0, 1.3)),
        builder.add_layered(material([0.2, 0.2, 0.3], 0.0, 0.2), film(170.0, 1.6)),
        builder.add_layered(material([0.9, 0.7, 0.5], 1.0, 0.6), film(45.0, 1.9)),
    ];
    builder.quad(
        [[-3.0, -1.0, 3.0], [3.0, -1.0, 3.0], [3.0, -1.0, -3.0], [-3.0, -1.0, -3.0]],
        looks[0],
    );
    builder.quad(
        [[-3.0, -1.0, -2.0], [3.0, -1.0, -2.0], [3.0, 3.0, -2.0], [-3.0, 3.0, -2.0]],
        looks[1],
    );
    for (at, look) in looks.into_iter().enumerate() {
        ball(&mut builder, look, 0.7, [at as f32 * 1.3 - 1.3, -0.2, 0.2 * at as f32]);
    }
    let lamp = builder
        .add_material(Material { emission: [7.0, 6.0, 5.0], ..material([0.1; 3], 0.0, 1.0) });
    let lit = builder
        .quad([[-0.5, 2.4, 0.6], [-0.4, 2.4, -0.7], [0.8, 2.5, -0.6], [0.7, 2.5, 0.5]], lamp);
    builder.emit(lit, 1.0);
    builder.emit(lit + 1, 1.0);
    builder.constant([0.6, 0.7, 0.9]);
    builder.camera = look([0.0, 0.2, 4.6]);
    bright(builder)
}
