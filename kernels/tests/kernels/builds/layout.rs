//! The scene layout is the same on both sides: size, alignment and offset of every field of every
//! struct.

use std::mem::offset_of;
use tessera_kernels::cuda::{CompressedNode, LeafTriangle};
use tessera_kernels::host::RayCounts;
use tessera_kernels::test_hooks;
use tessera_layout::*;

macro_rules! structs {
    ($($type:ident { $($field:ident)* })*) => {{
        let mut list: Vec<(String, u32)> = Vec::new();
        $(
            list.push((concat!("size of ", stringify!($type)).to_owned(),
                size_of::<$type>() as u32));
            list.push((concat!("alignment of ", stringify!($type)).to_owned(),
                align_of::<$type>() as u32));
            $(list.push((
                concat!(stringify!($type), ".", stringify!($field)).to_owned(),
                offset_of!($type, $field) as u32,
            ));)*
            // Naming every field in a pattern makes a forgotten one a compile error.
            let _every_field = |value: &$type| { let $type { $($field: _,)* .. } = value; };
        )*
        list
    }};
}

#[test]
fn rust_and_cpp_agree_on_every_field() {
    let ours = structs! {
        Triangle { v0 material v1 flags v2 light }
        ShadingVertex { normal u0 tangent tangent_sign color v0 uv1 reserved }
        TextureRef { uv_from_mesh texture uv_set reserved }
        Material {
            base_color emission metallic roughness normal_scale alpha_cutoff ior alpha_mode flags
            layers reserved
            base_color_texture metallic_roughness_texture normal_texture emission_texture
        }
        Layers {
            flags specular clearcoat clearcoat_roughness specular_color clearcoat_normal_scale
            sheen_color
            sheen_roughness diffuse_transmission_color diffuse_transmission transmission anisotropy
            anisotropy_cosine anisotropy_sine iridescence iridescence_ior iridescence_thickness_min
            iridescence_thickness_max medium reserved textures
        }
        Medium { absorption ior half_spread priority reserved }
        Texture { offset width height format wrap_u wrap_v bilinear level_count reserved }
        Light {
            position kind direction range emission triangle spot_scale spot_offset
            pick_probability area trail reserved
        }
        LightNode {
            center radius axis power emission_cosine spread_cosine spread_sine child
        }
        AliasEntry { threshold alias probability reserved }
        EnvironmentCell { first probability start }
        Environment {
            width height light present constant intensity map_from_world scene_radius
            scene_center reserved
        }
        Camera {
            world_from_camera kind half_width half_height lens_radius focus_distance near far
            blades blade_turn
            blade_apothem blade_half_side shift_x shift_y reserved
        }
        BvhNode8 { bounds child reserved }
        TriangleBlock { corner triangle }
        Instance {
            world_from_mesh normal_from_mesh tangent_from_mesh first_id first_triangle
            triangle_count root standing_padding reserved
        }
        SceneView {
            triangles triangle_vertices vertices materials textures texels lights light_alias
            light_nodes environment_texels
            environment_cells bvh_nodes triangle_blocks triangle_count material_count
            texture_count light_count
            bvh_node_count bvh_padding placed_light_count light_node_count layers environment camera
            instances mesh_triangles mesh_triangle_vertices mesh_vertices mesh_nodes mesh_blocks
            media instance_count medium_count pane_count reserved
        }
        UnitParams {
            frame_width frame_height x y width height first_sample sample_count seed depth aovs
            filter frame
            clamp reserved
        }
        CompressedNode { base exponents first_node first_triangle leaf lower upper }
        LeafTriangle { v0 triangle v1 reserved0 v2 reserved1 }
        RayCounts { closest any clamped non_finite }
    };
    let theirs = test_hooks::layout();
    assert_eq!(ours.len(), theirs.len(), "one side lists more fields");
    for ((what, ours), theirs) in ours.iter().zip(theirs) {
        assert_eq!(*ours, theirs, "{what}");
    }
}
