//! Scenes with instances, which have kernels of their own: the device's walk through meshes that
//! are held once gives the host's bits.

use crate::ptx::device::shipped_for_instances;
use crate::ptx::{bits, clang};
use std::sync::Arc;
use tessera_kernels::CheckedScene;
use tessera_support::instanced::{instanced, places};
use tessera_support::scenes::{self, Case};

/// With veils, with layers, and with neither.
const INSTANCED: [&str; 3] = ["veils", "vitrine", "parlour"];

/// Pixels across and down: fewer than of scenes without instances, since four places of everything
/// are four times the work.
const SIZE: u32 = 16;

/// The case with every surface that does not shine in four places.
fn twin(case: Case) -> Case {
    let scene = CheckedScene::new(Arc::new(instanced(&case.scene, &places()[1..5])));
    Case { scene: scene.expect("scenes of tests are right"), ..case }
}

fn all() -> Vec<Case> {
    let cases = scenes::sized(SIZE).into_iter().filter(|case| INSTANCED.contains(&case.name));
    let made: Vec<Case> = cases.map(twin).collect();
    assert_eq!(made.len(), INSTANCED.len());
    made
}

#[test]
fn every_launch_and_every_film_of_instances_has_the_bits_of_the_host() {
    bits::compare(shipped_for_instances(), &all());
}

#[test]
fn instances_by_clang_have_the_bits_of_the_host() {
    let Some(compiler) = clang::compiler("instances_by_clang_have_the_bits_of_the_host") else {
        return;
    };
    bits::compare(&clang::compile(&compiler, "entry/cuda_instances.cu"), &all());
}
