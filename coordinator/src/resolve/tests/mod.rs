//! Tests of resolving: other readers find in the files exactly what a plain computation in memory
//! gives.

use super::*;
use crate::blobs::{BlobError, DiskBlobs};
use crate::folder::DataFolder;
use crate::spool::{
    DiskSpools, EntryHeader, SpoolEntry, SpoolError, SpoolExtent, SpoolIndex, SpoolKey, Spools,
};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader};
use tessera_core::{FrameRounds, ResolveFailure};
use tessera_finishing::FinishError;
use tessera_protocol::frames::FrameSet;
use tessera_protocol::job::{
    AovSpec, ExrCompressionSpec, ExrDepthSpec, ExrLayerDepth, ExrLayerSpec, FilterSpec, FormatSpec,
    RenderSpec,
};
use tessera_protocol::{BlobHash, Epoch, Fingerprint, FrameNumber, JobId, TileSums, UnitIndex};

pub(crate) fn spec(width: u32, height: u32, tile: u32, spp: u32, unit_samples: u32) -> RenderSpec {
    RenderSpec {
        scene: "a.gltf".into(),
        files: vec![],
        width,
        height,
        frames: FrameSet::one(FrameNumber(4)),
        spp,
        seed: 17,
        filter: FilterSpec::Box,
        tile,
        unit_samples,
        formats: vec![FormatSpec::Exr, FormatSpec::Png],
        ..RenderSpec::default()
    }
}

/// Returns a made-up sum of one unit: positive, with every bit in use, and different for every
/// pixel.
fn sum(unit: u32, channel: usize, x: u32, y: u32) -> i64 {
    let seed = u64::from(unit) << 40 | (channel as u64) << 32 | u64::from(x) << 16 | u64::from(y);
    (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 38) as i64
}

pub(crate) struct Bench {
    _root: tempfile::TempDir,
    pub(crate) folder: DataFolder,
    pub(crate) blobs: DiskBlobs,
    pub(crate) key: SpoolKey,
    extent: SpoolExtent,
}

impl Bench {
    /// Creates a frame's spool with every unit in it, in a scattered order.
    pub(crate) fn new(spec: &RenderSpec) -> Self {
        let mut order: Vec<u32> = (0..Grid::of(spec).units()).collect();
        order.sort_by_key(|unit| unit.wrapping_mul(0x9e37_79b9));
        let films: Vec<(u32, TileSums)> =
            order.into_iter().map(|unit| (unit, film(spec, unit))).collect();
        Self::of_films(films)
    }

    /// Creates a frame's spool with these results.
    pub(crate) fn of_films(films: Vec<(u32, TileSums)>) -> Self {
        let root = tempfile::tempdir().unwrap();
        let folder = DataFolder::open(root.path()).unwrap();
        let blobs = DiskBlobs::open(&folder, 0);
        let key = SpoolKey { job: JobId(uuid::Uuid::from_u128(5)), frame: FrameNumber(4) };
        let (mut files, _) = DiskSpools::open(&folder.spool(), BTreeMap::new(), true).unwrap();
        let entries: Vec<SpoolEntry> =
            films.into_iter().map(|(unit, film)| entry(key, unit, &film)).collect();
        let extent = files.append(&entries).unwrap()[&key].clone();
        Self { _root: root, folder, blobs, key, extent }
    }

    pub(crate) fn spool(&self) -> SpoolIndex {
        SpoolIndex::read(&*DiskSpools::reader_of(&self.folder.spool()), self.key, &self.extent)
            .unwrap()
    }

    pub(crate) fn resolve(&self, spec: &RenderSpec) -> Result<Vec<FrameFile>, ResolveError> {
        self.resolve_in_rounds(spec, None)
    }

    pub(crate) fn resolve_in_rounds(
        &self,
        spec: &RenderSpec,
        rounds: Option<&FrameRounds>,
    ) -> Result<Vec<FrameFile>, ResolveError> {
        let spool = self.spool();
        let frame = Frame {
            job: self.key.job,
            frame: self.key.frame,
            spec,
            fingerprint: Some(Fingerprint([0xab; 32])),
            spool: &spool,
            rounds,
        };
        resolve(&frame, &self.blobs)
    }

    pub(crate) fn open(&self, file: &FrameFile) -> BufReader<File> {
        let opened = File::open(self.blobs.path(file.hash)).unwrap();
        assert_eq!(self.blobs.length(file.hash).unwrap(), Some(file.length));
        assert_eq!(self.blobs.verify(file.hash, file.length), None);
        BufReader::new(opened)
    }

    fn left_over(&self) -> usize {
        std::fs::read_dir(self.folder.temporary()).unwrap().count()
    }
}

/// Returns a made-up result of a unit.
pub(crate) fn film(spec: &RenderSpec, unit: u32) -> TileSums {
    let (tile, samples) = Grid::of(spec).unit(UnitIndex(unit)).unwrap();
    let mut film = TileSums::empty(tile.width as u16, tile.height as u16, spec.channels());
    film.samples = samples.count;
    let mut values = film.values.iter_mut();
    for channel in 0..usize::from(spec.channels()) {
        for y in 0..tile.height {
            for x in 0..tile.width {
                *values.next().unwrap() = sum(unit, channel, tile.x + x, tile.y + y);
            }
        }
    }
    film
}

fn entry(key: SpoolKey, unit: u32, film: &TileSums) -> SpoolEntry {
    let bytes = Bytes::from(film.to_bytes());
    let header = EntryHeader {
        unit: UnitIndex(unit),
        epoch: Epoch(u64::from(unit)),
        first: 0,
        samples: film.samples,
        length: bytes.len() as u32,
        hash: BlobHash::of(&bytes),
    };
    SpoolEntry { key, header, body: bytes.into() }
}

/// Returns a pixel by the film's definition, without tiles, rows or threads.
pub(crate) fn expected(spec: &RenderSpec, channel: usize, x: u32, y: u32) -> f32 {
    let columns = spec.width.div_ceil(spec.tile);
    let tile = y / spec.tile * columns + x / spec.tile;
    let passes = Grid::of(spec).passes();
    let total: i64 =
        (tile * passes..(tile + 1) * passes).map(|unit| sum(unit, channel, x, y)).sum();
    (total as f64 / 16_777_216.0 / f64::from(spec.spp)) as f32
}

fn expected_sha256(spec: &RenderSpec) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for y in 0..spec.height {
        for x in 0..spec.width {
            (0..3).for_each(|channel| hasher.update(expected(spec, channel, x, y).to_le_bytes()));
        }
    }
    hasher.finalize().into()
}

fn attributes_say_half(attributes: &exr::meta::header::LayerAttributes) -> bool {
    let ours = &attributes.other[&exr::meta::attribute::Text::from("tessera")];
    let exr::meta::attribute::AttributeValue::Text(text) = ours else { panic!("a text") };
    text.to_string().contains("\"exr_depth\":\"half\"")
}

/// Reads the channels of an EXR by name, as 32-bit floats.
pub(crate) fn read_exr(
    file: BufReader<File>,
) -> (exr::meta::header::LayerAttributes, BTreeMap<String, Vec<f32>>) {
    use exr::prelude::*;
    let image = exr::prelude::read()
        .no_deep_data()
        .largest_resolution_level()
        .all_channels()
        .first_valid_layer()
        .all_attributes()
        .from_buffered(file)
        .unwrap();
    let layer = image.layer_data;
    let channels = layer.channel_data.list.iter().map(|channel| {
        let values = channel.sample_data.values_as_f32().collect();
        // Files in half precision have a test of their own.
        let is_float = matches!(channel.sample_data, FlatSamples::F32(_));
        assert!(is_float || attributes_say_half(&layer.attributes), "{}", channel.name);
        (channel.name.to_string(), values)
    });
    let channels = channels.collect();
    (layer.attributes, channels)
}

fn check_exr(bench: &Bench, spec: &RenderSpec, file: &FrameFile) {
    let (attributes, channels) = read_exr(bench.open(file));
    let mut names = vec![("R", 0), ("G", 1), ("B", 2)];
    if !spec.aovs.is_empty() {
        names.extend([
            ("albedo.R", 3),
            ("albedo.G", 4),
            ("albedo.B", 5),
            ("normal.X", 6),
            ("normal.Y", 7),
        ]);
        names.extend([("normal.Z", 8), ("depth.Z", 9), ("position.X", 10), ("position.Y", 11)]);
        names.push(("position.Z", 12));
    }
    assert_eq!(channels.len(), names.len() + 1);
    assert!(channels["A"].iter().all(|alpha| *alpha == 1.0));
    for (name, channel) in names {
        let values = &channels[name];
        assert_eq!(values.len(), (spec.width * spec.height) as usize);
        for (index, value) in values.iter().enumerate() {
            let (x, y) = (index as u32 % spec.width, index as u32 / spec.width);
            let expected = expected(spec, channel, x, y);
            assert_eq!(value.to_bits(), expected.to_bits(), "{name} at {x}, {y}");
        }
    }
    let ours = &attributes.other[&exr::meta::attribute::Text::from("tessera")];
    let exr::meta::attribute::AttributeValue::Text(text) = ours else { panic!("a text") };
    let ours: serde_json::Value = serde_json::from_str(&text.to_string()).unwrap();
    assert_eq!(ours["samples"], spec.spp);
    assert_eq!(ours["seed"], 17);
    assert_eq!(ours["frame"], 4);
    assert_eq!(ours["job"], bench.key.job.to_string());
    assert_eq!(ours["fingerprint"], "abababababababab");
}

#[test]
fn an_exr_has_the_bits_of_a_plain_computation() {
    // Odd sizes, tiles whose height is not a multiple of a block's 16 rows, several passes, one
    // pixel, and one column.
    let sizes = [
        (37, 53, 10, 7, 3),
        (64, 64, 64, 1, 1),
        (1, 1, 8, 5, 0),
        (3, 100, 33, 4, 1),
        (130, 17, 8, 2, 2),
    ];
    for (width, height, tile, spp, unit_samples) in sizes {
        let mut spec = spec(width, height, tile, spp, unit_samples);
        for aovs in
            [vec![], vec![AovSpec::Albedo, AovSpec::Normal, AovSpec::Depth, AovSpec::Position]]
        {
            spec.aovs = aovs;
            let bench = Bench::new(&spec);
            let files = bench.resolve(&spec).unwrap();
            assert_eq!(
                files.iter().map(|file| file.format.as_str()).collect::<Vec<_>>(),
                ["exr", "png"]
            );
            assert!(files.iter().all(|file| file.pixels_sha256 == expected_sha256(&spec)));
            check_exr(&bench, &spec, &files[0]);
            assert_eq!(bench.left_over(), 0);
        }
    }
}

/// Names of the channels of an EXR that have 16 bits.
fn halves(file: BufReader<File>) -> Vec<String> {
    let meta = exr::meta::MetaData::read_from_buffered(file, true).unwrap();
    let channels = meta.headers[0].channels.list.iter();
    let halves = channels.filter(|c| c.sample_type == exr::meta::attribute::SampleType::F16);
    halves.map(|channel| channel.name.to_string()).collect()
}

#[test]
fn colours_of_a_half_exr_are_the_nearest_halves() {
    for denoise in [false, true] {
        let mut float = spec(37, 53, 16, 8, 3);
        float.aovs = vec![AovSpec::Albedo, AovSpec::Normal, AovSpec::Depth, AovSpec::Position];
        float.denoise = denoise;
        let half = RenderSpec { exr_depth: ExrDepthSpec::Half, ..float.clone() };
        let bench = Bench::new(&float);
        let [float, half] = [float, half].map(|spec| bench.resolve(&spec).unwrap());
        // The pixels and the PNG are those of the job with 32 bits.
        assert_eq!(half[0].pixels_sha256, float[0].pixels_sha256);
        assert_eq!(half[1], float[1]);
        assert!(half[0].length < float[0].length);
        assert!(halves(bench.open(&float[0])).is_empty());
        let halves = halves(bench.open(&half[0]));
        let [(_, float), (_, half)] = [&float, &half].map(|files| read_exr(bench.open(&files[0])));
        assert_eq!(half.len(), if denoise { 17 } else { 14 });
        for (name, values) in &half {
            let layer = name.split('.').next().unwrap();
            let is_half = !["depth", "position"].contains(&layer);
            assert_eq!(halves.contains(name), is_half, "{name}");
            for (value, whole) in values.iter().zip(&float[name]) {
                // Half a unit in the last of 11 bits; or the largest half.
                let bound = if is_half { whole.abs() / 2048.0 + f32::powi(2.0, -25) } else { 0.0 };
                let nearest = whole.clamp(-65504.0, 65504.0);
                assert!((value - nearest).abs() <= bound, "{name}: {value} for {whole}");
            }
        }
    }
}

#[test]
fn single_layers_have_a_precision_of_their_own() {
    let mut spec = spec(20, 20, 16, 2, 1);
    spec.aovs = vec![AovSpec::Albedo, AovSpec::Depth];
    spec.exr_depth = ExrDepthSpec::Half;
    let of = |layer, depth| ExrLayerDepth { layer, depth };
    spec.exr_layers = vec![
        of(ExrLayerSpec::Albedo, ExrDepthSpec::Float),
        of(ExrLayerSpec::Depth, ExrDepthSpec::Half),
    ];
    let bench = Bench::new(&spec);
    let files = bench.resolve(&spec).unwrap();
    assert_eq!(halves(bench.open(&files[0])), ["A", "B", "G", "R", "depth.Z"]);
}

#[test]
fn every_compression_keeps_what_it_says() {
    use ExrCompressionSpec::{B44, B44a, None, Piz, Pxr24, Rle, Zip, Zips};
    let float = RenderSpec { formats: vec![FormatSpec::Exr], ..spec(70, 83, 16, 2, 1) };
    let bench = Bench::new(&float);
    let read = |spec: &RenderSpec| {
        let files = bench.resolve(spec).unwrap();
        assert_eq!(bench.resolve(spec).unwrap(), files, "the same bytes again");
        let meta = exr::meta::MetaData::read_from_buffered(bench.open(&files[0]), true).unwrap();
        (meta.headers[0].compression, read_exr(bench.open(&files[0])).1)
    };
    let plain = read(&float);
    assert_eq!(plain.0, exr::compression::Compression::ZIP16);
    for (compression, kept) in [
        (None, exr::compression::Compression::Uncompressed),
        (Rle, exr::compression::Compression::RLE),
        (Zips, exr::compression::Compression::ZIP1),
        (Zip, exr::compression::Compression::ZIP16),
        (Piz, exr::compression::Compression::PIZ),
        (Pxr24, exr::compression::Compression::PXR24),
        (B44, exr::compression::Compression::B44),
        (B44a, exr::compression::Compression::B44A),
    ] {
        let found = read(&RenderSpec { exr_compression: compression, ..float.clone() });
        assert_eq!(found.0, kept);
        for (name, values) in &found.1 {
            for (value, whole) in values.iter().zip(&plain.1[name]) {
                let bound = if compression == Pxr24 { whole.abs() / 65536.0 } else { 0.0 };
                assert!((value - whole).abs() <= bound, "{compression:?}: {value} for {whole}");
            }
        }
    }
}

pub(crate) fn read_png(file: BufReader<File>) -> (png::Info<'static>, Vec<u8>) {
    let mut reader = png::Decoder::new(file).read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let frame = reader.next_frame(&mut bytes).unwrap();
    bytes.truncate(frame.buffer_size());
    reader.finish().unwrap();
    (reader.info().clone(), bytes)
}

/// The sRGB curve by the platform's functions. The last digit may differ, but not a whole step.
pub(crate) fn srgb(linear: f64) -> f64 {
    let linear = linear.clamp(0.0, 1.0);
    if linear <= 0.0031308 { linear * 12.92 } else { 1.055 * linear.powf(1.0 / 2.4) - 0.055 }
}

#[test]
fn a_png_shows_the_pixels_through_the_srgb_curve() {
    for (format, steps) in [(FormatSpec::Png, 255.0), (FormatSpec::Png16, 65535.0)] {
        let mut spec = spec(45, 31, 16, 4, 2);
        spec.formats = vec![format];
        spec.exposure = -2.0;
        let bench = Bench::new(&spec);
        let files = bench.resolve(&spec).unwrap();
        assert_eq!(
            files[0].pixels_sha256,
            expected_sha256(&spec),
            "exposure is of the file, not of the pixels"
        );
        let (info, bytes) = read_png(bench.open(&files[0]));
        assert_eq!((info.width, info.height, info.color_type), (45, 31, png::ColorType::Rgb));
        assert!(info.srgb.is_some());
        let values: Vec<f64> = match format {
            FormatSpec::Png => bytes.iter().map(|byte| f64::from(*byte)).collect(),
            _ => bytes
                .chunks(2)
                .map(|pair| f64::from(u16::from_be_bytes([pair[0], pair[1]])))
                .collect(),
        };
        let mut seen = std::collections::BTreeSet::new();
        for (index, value) in values.iter().enumerate() {
            let (pixel, channel) = (index as u32 / 3, index % 3);
            let linear = expected(&spec, channel, pixel % 45, pixel / 45);
            let shown = srgb(f64::from(linear) / 4.0) * steps;
            assert!((value - shown).abs() <= 0.5001, "{value} is not {shown}");
            seen.insert(*value as u32);
        }
        assert!(seen.len() >= 90, "{} values are too few to see anything", seen.len());
    }
}

/// Decodes a JPEG with another library's decoder.
fn read_jpeg(file: BufReader<File>) -> ((usize, usize), Vec<u8>) {
    let mut decoder = zune_jpeg::JpegDecoder::new(file);
    let pixels = decoder.decode().unwrap();
    (decoder.dimensions().unwrap(), pixels)
}

#[test]
fn a_jpeg_is_near_the_png_of_the_same_pixels() {
    // Sizes that are no multiple of a block's 8, bands that end within a block, and one pixel.
    for (width, height, tile) in [(45, 31, 16), (64, 64, 12), (8, 8, 8), (1, 1, 8), (3, 200, 70)] {
        let mut spec = spec(width, height, tile, 4, 2);
        spec.formats = vec![FormatSpec::Png, FormatSpec::Jpeg];
        spec.exposure = -2.0;
        let bench = Bench::new(&spec);
        let error_at = |quality: u8| {
            let spec = RenderSpec { jpeg_quality: quality, ..spec.clone() };
            let files = bench.resolve(&spec).unwrap();
            assert_eq!(bench.resolve(&spec).unwrap(), files, "the same bytes again");
            let formats: Vec<_> = files.iter().map(|file| file.format.as_str()).collect();
            assert_eq!(formats, ["png", "jpg"]);
            let (_, expected) = read_png(bench.open(&files[0]));
            let (size, shown) = read_jpeg(bench.open(&files[1]));
            assert_eq!(size, (width as usize, height as usize));
            let pairs = shown.iter().zip(&expected);
            let sum: u64 = pairs.map(|(a, b)| u64::from(a.abs_diff(*b)).pow(2)).sum();
            let error = (sum as f64 / expected.len() as f64).sqrt();
            (error, files[1].length)
        };
        let (fine, coarse) = (error_at(100), error_at(20));
        // Each pixel of the made-up picture is noise, which is the hardest there is.
        assert!(fine.0 < 1.5, "an error of {} at quality 100", fine.0);
        assert!(width < 8 || fine.0 < coarse.0 && coarse.1 < fine.1, "{fine:?}, {coarse:?}");
    }
}

#[test]
fn a_metered_exposure_shows_a_frame_at_middle_grey() {
    let mut spec = spec(64, 40, 16, 4, 2);
    spec.auto_exposure = true;
    let bench = Bench::new(&spec);
    let spool = bench.spool();
    let frame = |spec| Frame {
        job: bench.key.job,
        frame: bench.key.frame,
        spec,
        fingerprint: None,
        spool: &spool,
        rounds: None,
    };
    let exposure = metered_exposure(&frame(&spec)).unwrap();
    // The tiles' size, and what the spec says so far, make no difference.
    let dark = RenderSpec { exposure: 5.0, ..spec.clone() };
    assert_eq!(metered_exposure(&frame(&dark)).unwrap(), exposure);
    spec.exposure = exposure;
    let files = bench.resolve(&spec).unwrap();
    let (attributes, _) = read_exr(bench.open(&files[0]));
    let ours = &attributes.other[&exr::meta::attribute::Text::from("tessera")];
    let exr::meta::attribute::AttributeValue::Text(text) = ours else { panic!("a text") };
    let ours: serde_json::Value = serde_json::from_str(&text.to_string()).unwrap();
    assert_eq!(ours["exposure"].to_string(), exposure.to_string());
    assert_eq!(ours["auto_exposure"], true);
    let (info, bytes) = read_png(bench.open(&files[1]));
    let comment = format!("exposure metered: {exposure} stops");
    assert_eq!(info.uncompressed_latin1_text[0].text, comment);
    // Middle grey is 118 of 255: about half of the pixels are above it.
    let above = bytes.iter().filter(|byte| **byte > 118).count() * 100 / bytes.len();
    assert!((35..=75).contains(&above), "{above} % of the values are bright");
    // The value that is told makes the same picture.
    let typed = exposure.to_string().parse().unwrap();
    let again = RenderSpec { auto_exposure: false, exposure: typed, ..spec.clone() };
    let again = bench.resolve(&again).unwrap();
    assert_eq!(read_png(bench.open(&again[1])).1, bytes);
}

#[test]
fn notes_are_in_the_comment_of_a_jpeg() {
    let mut spec = spec(8, 8, 8, 4, 2);
    spec.formats = vec![FormatSpec::Jpeg];
    let bench = Bench::new(&spec);
    let bytes = |spec: &RenderSpec| {
        let files = bench.resolve(spec).unwrap();
        std::fs::read(bench.blobs.path(files[0].hash)).unwrap()
    };
    let plain = bytes(&spec);
    spec.clamp = Some(4.0);
    let noted = bytes(&spec);
    let note = b"indirect light clamped at 4: darker than the scene";
    let mut comment = vec![0xff, 0xfe, 0, note.len() as u8 + 2];
    comment.extend(note);
    // Behind the start of the file and its JFIF header.
    assert_eq!(noted, [&plain[..20], &comment, &plain[20..]].concat());
}

// promise: P3
#[test]
fn resolving_again_gives_the_same_files() {
    let spec = spec(40, 40, 16, 4, 2);
    let bench = Bench::new(&spec);
    assert_eq!(bench.resolve(&spec).unwrap(), bench.resolve(&spec).unwrap());
}

// promise: P2
#[test]
fn incomplete_and_foreign_spools_are_errors_and_leave_no_file() {
    let spec = spec(40, 40, 16, 4, 2);
    let bench = Bench::new(&spec);
    let mut larger = spec.clone();
    larger.spp = 6;
    let error = bench.resolve(&larger).unwrap_err();
    assert!(matches!(error, ResolveError::Spool(SpoolError::Count { .. })), "{error}");
    // A unit without a result is made again, and a film of another shape is not.
    assert!(matches!(error.failure(), ResolveFailure::Lost(units, _) if units.len() == 1));
    let mut layered = spec.clone();
    layered.aovs = vec![AovSpec::Depth];
    let error = bench.resolve(&layered).unwrap_err();
    assert!(matches!(error, ResolveError::Shape { .. }));
    assert!(matches!(error.failure(), ResolveFailure::Fatal(_)));
    assert_eq!(bench.left_over(), 0);
}

#[test]
fn a_full_disk_is_tried_again_and_leaves_nothing() {
    for format in [FormatSpec::Exr, FormatSpec::Png, FormatSpec::Jpeg] {
        let spec = RenderSpec { formats: vec![format], ..spec(200, 200, 64, 1, 1) };
        let bench = Bench::new(&spec);
        let spool = bench.spool();
        let frame = Frame {
            job: bench.key.job,
            frame: bench.key.frame,
            spec: &spec,
            fingerprint: None,
            spool: &spool,
            rounds: None,
        };
        let films = SpoolFilms::new(&frame);
        let error = tessera_finishing::finish(&frame.described(), &films, &FullDisk).unwrap_err();
        let error = ResolveError::from(error);
        assert!(matches!(error, ResolveError::Write(_)), "{error:?}");
        assert!(matches!(error.failure(), ResolveFailure::Retry(_)));
        assert_eq!(bench.left_over(), 0);
    }
}

/// A device that refuses every byte stands for the disk.
struct FullDisk;

impl tessera_finishing::Outputs for FullDisk {
    fn begin(&self) -> Result<Box<dyn tessera_finishing::Output>, FinishError> {
        let file = File::options().read(true).write(true).open("/dev/full").unwrap();
        Ok(Box::new(Full(file)))
    }
}

/// A file on a full disk.
struct Full(File);

impl io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl io::Seek for Full {
    fn seek(&mut self, position: io::SeekFrom) -> io::Result<u64> {
        self.0.seek(position)
    }
}

impl tessera_finishing::Output for Full {
    fn finish(self: Box<Self>) -> Result<(BlobHash, u64), FinishError> {
        let source = BlobError::at("/dev/full")(io::Error::from_raw_os_error(28));
        Err(FinishError::Store(Box::new(source)))
    }
}
