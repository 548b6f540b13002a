//! Cases made so that single instructions decide what is seen: pictures, and paths to which no
//! picture leads. Runs nothing.

pub(crate) mod exact_values;
pub(crate) mod last_place;
pub(crate) mod made_up_paths;
pub(crate) mod many_lights;
pub(crate) mod thin_films;
pub(crate) mod wrapped_textures;
