//! Tests of assembled frames, which other readers read back.

use super::*;
use crate::blobs::DiskBlobs;
use crate::folder::DataFolder;
use crate::spool::{DiskSpools, EntryHeader, SpoolEntry, SpoolKey, Spools};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use tessera_protocol::compute::{
    ComputeFormat, Domain, Element, OutputArray, Partial, Program, Reduction, npy,
};
use tessera_protocol::{BlobHash, ChunkValues, Epoch};

fn spec(domain: &str, channels: u8, formats: &[ComputeFormat]) -> ComputeSpec {
    let domain = domain.parse::<Domain>().unwrap();
    ComputeSpec {
        channels,
        formats: formats.to_vec(),
        chunk: 7,
        ..ComputeSpec::new(Program::Builtin("merge".into()), domain)
    }
}

/// Returns the value at an index and channel. Values are in [0, 1] and all different.
fn value(index: u64, channel: u64) -> f32 {
    (index * 5 + channel) as f32 / 4096.0
}

fn result(spec: &ComputeSpec, unit: u32) -> ChunkValues {
    let (first, count) = Chunks::of(spec).range(UnitIndex(unit)).unwrap();
    let indices = first..first + u64::from(count);
    let values =
        indices.flat_map(|index| (0..u64::from(spec.channels)).map(move |c| value(index, c)));
    let bytes: Vec<u8> = values.flat_map(f32::to_le_bytes).collect();
    let Some(what) = spec.written()[0].reducing() else {
        return ChunkValues { count, width: 4, bytes };
    };
    let mut partial = Partial::new(what);
    partial.add_values(first, &bytes);
    ChunkValues { count, width: 1, bytes: partial.to_bytes() }
}

struct Bench {
    _root: tempfile::TempDir,
    folder: DataFolder,
    blobs: DiskBlobs,
}

impl Bench {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let folder = DataFolder::open(root.path()).unwrap();
        let blobs = DiskBlobs::open(&folder, 0);
        Self { _root: root, folder, blobs }
    }

    /// Assembles a frame from chunks that arrived in the order of `results`.
    fn assemble(
        &self,
        spec: &ComputeSpec,
        results: &[(u32, ChunkValues)],
    ) -> Result<Vec<FrameFile>, ResolveError> {
        let key = SpoolKey { job: JobId::new(), frame: FrameNumber(1) };
        let (mut files, _) =
            DiskSpools::open(&self.folder.spool(), BTreeMap::new(), false).unwrap();
        let entries: Vec<SpoolEntry> = results
            .iter()
            .map(|(unit, chunk)| {
                let bytes = Bytes::from(chunk.to_bytes());
                let header = EntryHeader {
                    unit: UnitIndex(*unit),
                    epoch: Epoch(u64::from(*unit)),
                    first: 0,
                    samples: chunk.count,
                    length: bytes.len() as u32,
                    hash: BlobHash::of(&bytes),
                };
                SpoolEntry { key, header, body: bytes.into() }
            })
            .collect();
        let extent = files.append(&entries).unwrap()[&key].clone();
        let spool = SpoolIndex::read(&*files.reader(), key, &extent)?;
        let fingerprint = Some(Fingerprint([1; 32]));
        assemble(
            &Values { job: key.job, frame: key.frame, spec, fingerprint, spool: &spool },
            &self.blobs,
        )
    }

    fn whole(&self, spec: &ComputeSpec) -> Vec<FrameFile> {
        let units = Chunks::of(spec).units();
        let results: Vec<_> = (0..units).rev().map(|unit| (unit, result(spec, unit))).collect();
        self.assemble(spec, &results).unwrap()
    }

    fn read(&self, file: &FrameFile) -> Vec<u8> {
        std::fs::read(self.blobs.path(file.hash)).unwrap()
    }
}

#[test]
fn an_array_holds_every_value_in_its_place() {
    let bench = Bench::new();
    let spec = spec("6x5x3", 2, &[ComputeFormat::Npy]);
    let files = bench.whole(&spec);
    let bytes = bench.read(&files[0]);
    let header = npy::Header::read(&bytes, bytes.len() as u64).unwrap();
    assert_eq!((header.element, header.shape), (Element::F32, vec![3, 5, 6, 2]));
    let expected: Vec<u8> = (0..90)
        .flat_map(|index| [value(index, 0), value(index, 1)])
        .flat_map(f32::to_le_bytes)
        .collect();
    assert_eq!(bytes[header.data_offset..], expected);
    assert_eq!(files[0].pixels_sha256, <[u8; 32]>::from(Sha256::digest(&expected)));
}

#[test]
fn a_sum_is_one_value_whatever_the_chunks() {
    let bench = Bench::new();
    let mut spec =
        ComputeSpec { reduction: Some(Reduction::Sum), ..spec("1000", 1, &[ComputeFormat::Npy]) };
    let expected: f64 = (0..1000).map(|index| f64::from(value(index, 0))).sum();
    for chunk in [1, 7, 1000] {
        spec.chunk = chunk;
        let bytes = bench.read(&bench.whole(&spec)[0]);
        let header = npy::Header::read(&bytes, bytes.len() as u64).unwrap();
        assert_eq!((header.element, header.shape), (Element::F64, vec![]));
        assert_eq!(bytes[header.data_offset..], expected.to_le_bytes());
    }
}

#[test]
fn pictures_hold_the_same_values() {
    let bench = Bench::new();
    for channels in [1, 3, 4] {
        let spec =
            spec("19x21", channels, &[ComputeFormat::Npy, ComputeFormat::Exr, ComputeFormat::Png]);
        let files = bench.whole(&spec);
        let path = bench.blobs.path(files[1].hash);
        let image = exr::prelude::read_first_flat_layer_from_file(path).unwrap();
        let list = &image.layer_data.channel_data.list;
        let plane = |name: &str| {
            let channel = list.iter().find(|channel| channel.name.eq(name)).unwrap();
            channel.sample_data.values_as_f32().collect::<Vec<f32>>()
        };
        let names: &[&str] = if channels == 1 { &["Y"] } else { &["R", "G", "B"] };
        for (channel, name) in names.iter().enumerate() {
            let expected: Vec<f32> =
                (0..19 * 21).map(|index| value(index, channel as u64)).collect();
            assert_eq!(plane(name), expected, "{name}");
        }
        if channels != 1 {
            assert_eq!(plane("A")[5], if channels == 4 { value(5, 3) } else { 1.0 });
        }
        let png = std::fs::File::open(bench.blobs.path(files[2].hash)).unwrap();
        let mut reader = png::Decoder::new(std::io::BufReader::new(png)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        assert_eq!(pixels.len(), 19 * 21 * usize::from(channels));
        assert_eq!(pixels[0], 0);
        // sRGB of 398 × 5 / 4096.
        let last = pixels[pixels.len() - usize::from(channels)];
        assert_eq!(last, 185);
    }
}

#[test]
fn chunks_of_another_shape_are_refused() {
    let bench = Bench::new();
    let spec = spec("14", 1, &[ComputeFormat::Npy]);
    let good = (0, result(&spec, 0));
    let short = ChunkValues { count: 6, width: 4, bytes: vec![0; 24] };
    let error = bench.assemble(&spec, &[good.clone(), (1, short)]).unwrap_err();
    assert!(matches!(error, ResolveError::Chunk { unit: 1, .. }), "{error}");
    let long = ChunkValues { count: 7, width: 4, bytes: vec![0; 32] };
    assert!(bench.assemble(&spec, &[good.clone(), (1, long)]).is_err());
    assert!(bench.assemble(&spec, &[good]).is_err());
    assert_eq!(std::fs::read_dir(bench.folder.temporary()).unwrap().count(), 0);
}

/// Returns a job with the outputs `color`, `mean`, which is reduced, and `one`.
fn several() -> ComputeSpec {
    let output = |name: &str, channels, reduction| OutputArray {
        name: name.into(),
        channels,
        element: Element::F32,
        reduction,
        keys: 0,
    };
    let outputs = vec![
        output("color", 3, None),
        output("mean", 2, Some(Reduction::Mean)),
        output("one", 1, None),
    ];
    ComputeSpec { outputs, ..spec("19x21", 1, &[ComputeFormat::Npy]) }
}

/// Returns the values of indices as bytes.
fn floats(channels: u64, indices: impl Iterator<Item = u64>) -> Vec<u8> {
    let values = indices.flat_map(|at| (0..channels).map(move |channel| value(at, channel)));
    values.flat_map(f32::to_le_bytes).collect()
}

/// Returns the results of all units of a job with named outputs.
fn results_of_several(spec: &ComputeSpec) -> Vec<(u32, ChunkValues)> {
    let of = |unit: u32| {
        let (first, count) = Chunks::of(spec).range(UnitIndex(unit)).unwrap();
        let layout = spec.result_layout(count);
        let mut bytes = vec![0; layout.bytes as usize];
        for (output, (start, length)) in spec.outputs.iter().zip(&layout.parts) {
            let mut result = floats(output.channels.into(), first..first + u64::from(count));
            if let Some(what) = output.reducing() {
                let mut partial = Partial::new(what);
                partial.add_values(first, &result);
                result = partial.to_bytes();
            }
            bytes[*start as usize..][..*length as usize].copy_from_slice(&result);
        }
        (unit, ChunkValues { count, width: 4, bytes })
    };
    (0..Chunks::of(spec).units()).rev().map(of).collect()
}

#[test]
fn every_output_has_an_array_of_its_own() {
    let (bench, spec) = (Bench::new(), several());
    let files = bench.assemble(&spec, &results_of_several(&spec)).unwrap();
    let names: Vec<_> = files.iter().map(|file| file.format.as_str()).collect();
    assert_eq!(names, ["color.npy", "mean.npy", "one.npy"]);
    let array = |file: &FrameFile| {
        let bytes = bench.read(file);
        let header = npy::Header::read(&bytes, bytes.len() as u64).unwrap();
        (header.element, header.shape, bytes[header.data_offset..].to_vec())
    };
    assert_eq!(array(&files[0]), (Element::F32, vec![21, 19, 3], floats(3, 0..399)));
    assert_eq!(array(&files[2]), (Element::F32, vec![21, 19], floats(1, 0..399)));
    let mean = |channel| (0..399).map(|at| f64::from(value(at, channel))).sum::<f64>() / 399.0;
    let means: Vec<u8> = [mean(0), mean(1)].into_iter().flat_map(f64::to_le_bytes).collect();
    assert_eq!(array(&files[1]), (Element::F64, vec![2], means));
    let one = array(&files[2]).2;
    assert_eq!(files[2].pixels_sha256, <[u8; 32]>::from(Sha256::digest(&one)));
}

#[test]
fn every_output_has_pictures_of_its_own() {
    let (bench, mut spec) = (Bench::new(), several());
    spec.outputs.remove(1);
    spec.formats = vec![ComputeFormat::Exr, ComputeFormat::Png];
    let files = bench.assemble(&spec, &results_of_several(&spec)).unwrap();
    let names: Vec<_> = files.iter().map(|file| file.format.as_str()).collect();
    assert_eq!(names, ["color.exr", "color.png", "one.exr", "one.png"]);
    let plane = |file: &FrameFile, name: &str| {
        let path = bench.blobs.path(file.hash);
        let image = exr::prelude::read_first_flat_layer_from_file(path).unwrap();
        let list = &image.layer_data.channel_data.list;
        let channel = list.iter().find(|channel| channel.name.eq(name)).unwrap();
        channel.sample_data.values_as_f32().collect::<Vec<f32>>()
    };
    let expected = |channel| (0..399).map(|at| value(at, channel)).collect::<Vec<f32>>();
    assert_eq!(plane(&files[0], "B"), expected(2));
    assert_eq!(plane(&files[2], "Y"), expected(0));
    let size = |file: &FrameFile| {
        let reader = std::io::Cursor::new(bench.read(file));
        let info = png::Decoder::new(reader).read_info().unwrap().info().clone();
        (info.width, info.height, info.color_type)
    };
    assert_eq!(size(&files[1]), (19, 21, png::ColorType::Rgb));
    assert_eq!(size(&files[3]), (19, 21, png::ColorType::Grayscale));
}
