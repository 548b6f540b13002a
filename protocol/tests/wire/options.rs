//! The table of options has every field of a render job, and is right about what each one changes.

use tessera_protocol::job::options::{OPTIONS, away_from_default};
use tessera_protocol::job::{
    AovSpec, ApertureSpec, AssetFile, BladesSpec, CameraSpec, ChoiceSpec, CropSpec,
    EnvironmentSpec, ExrCompressionSpec, ExrDepthSpec, ExrLayerDepth, ExrLayerSpec, FilterSpec,
    FocusSpec, FormatSpec, LensSpec, LightUnitsSpec, LookAtSpec, LookSpec, SpaceSpec, ToneMapSpec,
};
use tessera_protocol::{BlobHash, FrameNumber, FrameSet, RenderSpec};

/// Sets one field to a value that is not its default.
type Change = fn(&mut RenderSpec);

/// One change for each field.
const CHANGES: [(&str, Change); 40] = [
    ("scene", |spec| spec.scene = "b.gltf".into()),
    ("files", |spec| {
        let (path, hash) = ("a.gltf".to_owned(), BlobHash([7; 32]));
        spec.files = vec![AssetFile { path, hash, length: 1 }];
    }),
    ("environment", |spec| spec.environment = EnvironmentSpec::Constant([1.0; 3])),
    ("environment_intensity", |spec| spec.environment_intensity = 2.0),
    ("environment_rotation_degrees", |spec| spec.environment_rotation_degrees = 9.0),
    ("shown_scene", |spec| spec.shown_scene = Some(ChoiceSpec::Index(1))),
    ("animations", |spec| spec.animations = vec![ChoiceSpec::Named("Run".into())]),
    ("lights", |spec| spec.lights = LightUnitsSpec::Photometric),
    ("camera", |spec| spec.camera = CameraSpec::Index(1)),
    ("lens", |spec| {
        let (aperture, focus) = (ApertureSpec::FStop(2.0), FocusSpec::Distance(1.0));
        spec.lens = Some(LensSpec { aperture, focus, blades: None, sensor_width_mm: None });
    }),
    ("shift", |spec| spec.shift = [0.25, -0.125]),
    ("width", |spec| spec.width = 7),
    ("height", |spec| spec.height = 7),
    ("frames", |spec| spec.frames = FrameSet::one(FrameNumber(3))),
    ("fps", |spec| spec.fps = 25.0),
    ("spp", |spec| spec.spp = 128),
    ("depth", |spec| spec.depth = 3),
    ("seed", |spec| spec.seed = 1),
    ("filter", |spec| spec.filter = FilterSpec::Box),
    ("tile", |spec| spec.tile = 16),
    ("unit_samples", |spec| spec.unit_samples = 8),
    ("aovs", |spec| spec.aovs = vec![AovSpec::Depth]),
    ("formats", |spec| spec.formats = vec![FormatSpec::Png16]),
    ("exposure", |spec| spec.exposure = 1.0),
    ("tone_map", |spec| spec.tone_map = ToneMapSpec::Agx),
    ("variant", |spec| spec.variant = Some("night".into())),
    ("denoise", |spec| spec.denoise = true),
    ("noise", |spec| spec.noise = Some(0.1)),
    ("time_secs", |spec| spec.time_secs = Some(9)),
    ("clamp", |spec| spec.clamp = Some(4.0)),
    ("exr_depth", |spec| spec.exr_depth = ExrDepthSpec::Half),
    ("transparent", |spec| spec.transparent = true),
    ("crop", |spec| spec.crop = Some(CropSpec { x: 8, y: 16, width: 64, height: 48 })),
    ("overscan", |spec| spec.overscan = 5),
    ("look", |spec| spec.look = Some(LookSpec::Punchy)),
    ("exr_layers", |spec| {
        let (layer, depth) = (ExrLayerSpec::Depth, ExrDepthSpec::Half);
        spec.exr_layers = vec![ExrLayerDepth { layer, depth }];
    }),
    ("exr_compression", |spec| spec.exr_compression = ExrCompressionSpec::Piz),
    ("jpeg_quality", |spec| spec.jpeg_quality = 75),
    ("auto_exposure", |spec| spec.auto_exposure = true),
    ("space", |spec| {
        spec.space = Some(Box::new(SpaceSpec { origin: [1e5, 0.0, 0.5], exponent: -3 }))
    }),
];

#[test]
fn every_field_has_one_row_and_each_is_away_when_it_is_changed() {
    let value = serde_json::to_value(RenderSpec::default()).unwrap();
    let mut fields: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
    let mut rows = OPTIONS.map(|row| row.field);
    let mut changed = CHANGES.map(|(field, _)| field);
    assert_eq!(rows, changed, "a change of each field, in the order of the table");
    fields.sort_unstable();
    rows.sort_unstable();
    changed.sort_unstable();
    assert_eq!(fields, rows, "a row in protocol/src/job/options.rs for each field");
    for (field, change) in CHANGES {
        let mut spec = RenderSpec::default();
        change(&mut spec);
        let away: Vec<_> =
            away_from_default(&spec).iter().map(|chosen| chosen.option.field).collect();
        assert_eq!(away, [field]);
    }
    assert!(away_from_default(&RenderSpec::default()).is_empty());
}

#[test]
fn options_without_effect_on_the_film_keep_its_shape() {
    let told = |spec: &RenderSpec| {
        let layers = (spec.film_layers(), spec.channels(), spec.has_half());
        let size = (spec.width, spec.height, spec.spp, spec.overscan);
        (layers, spec.rounds(), spec.scene_hash(), size)
    };
    let plain = RenderSpec::default();
    for (row, (field, change)) in OPTIONS.iter().zip(CHANGES) {
        let mut spec = plain.clone();
        change(&mut spec);
        let same = told(&spec) == told(&plain);
        assert!(same || row.effect.has_film(), "{field} changes the film");
    }
}

#[test]
fn chosen_options_are_listed_by_name_and_value() {
    let mut spec = RenderSpec::default();
    (spec.denoise, spec.clamp, spec.environment_intensity) = (true, Some(0.3), 0.1);
    let chosen = away_from_default(&spec);
    let words: Vec<_> = chosen.iter().map(|chosen| chosen.words()).collect();
    assert_eq!(words, ["env-intensity 0.1", "denoise", "clamp 0.3"]);
    let words = |change: Change| {
        let mut spec = RenderSpec::default();
        change(&mut spec);
        let chosen = away_from_default(&spec);
        chosen.iter().map(|chosen| chosen.words()).collect::<Vec<_>>().join("; ")
    };
    let lens = |spec: &mut RenderSpec| {
        let (aperture, focus) = (ApertureSpec::FStop(2.8), FocusSpec::Point([1.0, -2.5, 0.0]));
        let blades = Some(BladesSpec { count: 5, rotation_degrees: 30.0 });
        spec.lens = Some(LensSpec { aperture, focus, blades, sensor_width_mm: Some(36.0) });
    };
    let told = "f-stop 2.8, focus-point 1,-2.5,0, blades 5, blade-rotation 30, sensor-width 36";
    assert_eq!(words(lens), told);
    assert_eq!(words(|spec| spec.environment = EnvironmentSpec::None), "env none");
    assert_eq!(words(|spec| spec.shown_scene = Some(ChoiceSpec::Index(1))), "scene 1");
    let clips = |spec: &mut RenderSpec| {
        spec.animations = vec![ChoiceSpec::Named("Run".into()), ChoiceSpec::Index(2)];
    };
    assert_eq!(words(clips), "animation Run, animation 2");
    let layers = |spec: &mut RenderSpec| {
        let [depth, beauty] = [ExrLayerSpec::Depth, ExrLayerSpec::Beauty];
        spec.exr_layers = vec![
            ExrLayerDepth { layer: beauty, depth: ExrDepthSpec::Float },
            ExrLayerDepth { layer: depth, depth: ExrDepthSpec::Half },
        ];
    };
    assert_eq!(words(|spec| spec.auto_exposure = true), "exposure auto");
    assert_eq!(words(layers), "exr-depth beauty=float,depth=half");
    let eye = |spec: &mut RenderSpec| {
        let (eye, target, up) = ([0.0, 1.0, 2.0], [0.0; 3], [0.0, 1.0, 0.0]);
        let look = LookAtSpec { eye, target, up, vfov_degrees: 45.0, ..LookAtSpec::default() };
        spec.camera = CameraSpec::LookAt(Box::new(look));
    };
    assert_eq!(words(eye), "eye 0,1,2, target 0,0,0, up 0,1,0, vfov 45");
    assert_eq!(words(|spec| spec.camera = CameraSpec::Named("eye".into())), "camera eye");
    assert_eq!(words(|spec| spec.camera = CameraSpec::Index(3)), "camera 3");
    assert_eq!(words(|spec| spec.shift = [0.25, 0.0]), "shift 0.25,0");
    let crop = |spec: &mut RenderSpec| {
        spec.crop = Some(CropSpec { x: 8, y: 16, width: 64, height: 48 });
        spec.overscan = 5;
    };
    assert_eq!(words(crop), "crop 8,16,64x48; overscan 5");
    assert_eq!(
        words(|spec| spec.environment = EnvironmentSpec::Constant([0.5; 3])),
        "env 0.5,0.5,0.5"
    );
    let map = |spec: &mut RenderSpec| spec.environment = EnvironmentSpec::Map { path: "a".into() };
    assert_eq!(words(map), "env a");
    let notes: Vec<_> = chosen.iter().filter_map(|chosen| chosen.file_note()).collect();
    assert_eq!(notes, ["indirect light clamped at 0.3: darker than the scene"]);
    let keys: Vec<_> = chosen.iter().filter_map(|chosen| chosen.option.file_key()).collect();
    assert_eq!(keys, ["environment_intensity", "denoised", "clamp"]);
}
