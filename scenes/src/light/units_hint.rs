//! A hint for files whose punctual lights look like candela and lux where W/sr and W/m² are read.
//! Changes no light.

use crate::light::emitter::TriangleEmitter;
use crate::light::environment::LoadedEnvironment;
use crate::light::punctual::Punctual;
use crate::options::LightUnits;
use std::f64::consts::PI;

/// Factor by which punctual lights may be brighter than all else.
const FACTOR_MAX: f64 = 100.0;

/// Everything that lights a scene at its start.
pub(crate) struct Lighting<'a> {
    /// Punctual lights that are shown.
    pub(crate) punctual: Vec<&'a Punctual>,
    pub(crate) emitters: &'a [TriangleEmitter],
    pub(crate) environment: &'a LoadedEnvironment,
    /// Radius of the scene's bounding sphere in metres.
    pub(crate) radius: f64,
}

impl Lighting<'_> {
    /// Returns the hint; None where punctual lights are not far brighter than the rest, or where
    /// the units were chosen. All else is the brightest of the environment, the emissive surfaces,
    /// and the light under which a white surface has the luminance 1.
    pub(crate) fn units_hint(&self, units: LightUnits) -> Option<String> {
        if units == LightUnits::Photometric {
            return None;
        }
        let lights = self.punctual.iter().map(|light| light.irradiance(self.radius));
        let brightest = lights.filter(|value| value.is_finite()).fold(0.0, f64::max);
        let surfaces = self.emitters.iter().map(|emitter| emitter.choice.power / emitter.area);
        let rest = surfaces.fold(self.environment.irradiance().max(PI), f64::max);
        (brightest > FACTOR_MAX * rest).then(|| {
            format!(
                "its punctual lights are {:.0} times brighter than all else; if their intensities \
                    are candela and lux, as in Blender's default export, use --lights photometric",
                brightest / rest
            )
        })
    }
}
