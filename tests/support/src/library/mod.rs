//! The sample scenes of `scenes/library/`: used by the program that writes them and by the test
//! that compares them. `scenes/library/README.md` says what each is for.

mod builder;
mod cornell;
mod drink;
mod lights;
mod materials;
mod spinning;
mod sunflower;

pub use builder::Scene;

/// Every scene, with the name of its file without `.gltf`.
pub fn scenes() -> [(&'static str, Scene); 6] {
    [
        ("cornell-box", cornell::scene()),
        ("material-row", materials::scene()),
        ("many-lights", lights::scene()),
        ("spinning-cube", spinning::scene()),
        ("sunflower", sunflower::scene()),
        ("drink", drink::scene()),
    ]
}
