//! The precision of EXR files, for colours and for single layers.

use std::str::FromStr;
use tessera_protocol::job::{ExrDepthSpec, ExrLayerDepth, ExrLayerSpec};

/// What `--exr-depth` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExrDepthArg {
    /// Precision of layers that are colours or directions.
    pub colors: ExrDepthSpec,
    /// Precision of single layers, ascending.
    pub layers: Vec<ExrLayerDepth>,
}

impl FromStr for ExrDepthArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut colors = None;
        let mut layers: Vec<ExrLayerDepth> = Vec::new();
        for part in text.split(',') {
            let Some((name, depth)) = part.split_once('=') else {
                if colors.replace(depth_of(part)?).is_some() {
                    return Err(format!("`{text}` says twice what colours have"));
                }
                continue;
            };
            let layer = layer_of(name)?;
            if layers.iter().any(|other| other.layer == layer) {
                return Err(format!("`{text}` says twice what {name} has"));
            }
            layers.push(ExrLayerDepth { layer, depth: depth_of(depth)? });
        }
        layers.sort_by_key(|of| of.layer);
        Ok(Self { colors: colors.unwrap_or(ExrDepthSpec::Float), layers })
    }
}

fn depth_of(text: &str) -> Result<ExrDepthSpec, String> {
    match text {
        "half" => Ok(ExrDepthSpec::Half),
        "float" => Ok(ExrDepthSpec::Float),
        _ => Err(format!("`{text}` is not one of: half, float")),
    }
}

fn layer_of(text: &str) -> Result<ExrLayerSpec, String> {
    let layer = ExrLayerSpec::ALL.into_iter().find(|layer| layer.name() == text);
    layer.ok_or_else(|| {
        let names = ExrLayerSpec::ALL.map(ExrLayerSpec::name).join(", ");
        format!("`{text}` is not one of: {names}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_and_layers_are_told_apart() {
        let of = |layer, depth| ExrLayerDepth { layer, depth };
        let parse = |text: &str| text.parse::<ExrDepthArg>();
        let half = ExrDepthArg { colors: ExrDepthSpec::Half, layers: vec![] };
        assert_eq!(parse("half"), Ok(half.clone()));
        let layers = vec![
            of(ExrLayerSpec::Normal, ExrDepthSpec::Float),
            of(ExrLayerSpec::Depth, ExrDepthSpec::Half),
        ];
        assert_eq!(parse("half,depth=half,normal=float"), Ok(ExrDepthArg { layers, ..half }));
        let noisy = vec![of(ExrLayerSpec::Noisy, ExrDepthSpec::Half)];
        let noisy = ExrDepthArg { colors: ExrDepthSpec::Float, layers: noisy };
        assert_eq!(parse("noisy=half"), Ok(noisy));
        let refused = [
            ("quarter", "`quarter` is not one of: half, float"),
            ("half,half", "says twice what colours have"),
            ("depth=half,depth=half", "says twice what depth has"),
            ("id=half", "`id` is not one of: beauty, albedo, normal, depth"),
            ("", "`` is not one of: half, float"),
        ];
        for (text, words) in refused {
            let error = parse(text).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
