//! Crops and overscan: parts of a frame have the bits of the whole one, from any farm, and their
//! files say where they lie.

use std::collections::BTreeMap;
use std::path::Path;
use tessera_support::farm::{Farm, library};

/// A picture as an EXR file has it.
struct Picture {
    /// Left, top, width and height of the display window and of the data window.
    windows: [[i64; 4]; 2],
    /// Bits of each channel by place in the frame.
    pixels: BTreeMap<(i64, i64), Vec<u32>>,
    channels: Vec<String>,
    /// Size of the PNG beside it.
    png: [u32; 2],
}

fn read(folder: &Path) -> Picture {
    let file = |extension: &str| {
        let mut files = std::fs::read_dir(folder).expect("a folder").flatten();
        let file = files.find(|file| file.path().extension().is_some_and(|e| e == extension));
        file.expect("one file of each format").path()
    };
    let image = exr::prelude::read_first_flat_layer_from_file(file("exr")).expect("an EXR file");
    let place = |bounds: exr::meta::attribute::IntegerBounds| {
        let (position, size) = (bounds.position, bounds.size);
        [position.0.into(), position.1.into(), size.0 as i64, size.1 as i64]
    };
    let layer = &image.layer_data;
    let data = place(layer.absolute_bounds());
    let display = place(image.attributes.display_window);
    let list = &layer.channel_data.list;
    let channels = list.iter().map(|channel| channel.name.to_string()).collect();
    let values: Vec<Vec<u32>> = list
        .iter()
        .map(|channel| channel.sample_data.values_as_f32().map(f32::to_bits).collect())
        .collect();
    let mut pixels = BTreeMap::new();
    for index in 0..(data[2] * data[3]) as usize {
        let (x, y) = (index as i64 % data[2], index as i64 / data[2]);
        let bits = values.iter().map(|channel| channel[index]).collect();
        pixels.insert((data[0] + x, data[1] + y), bits);
    }
    let png = std::io::BufReader::new(std::fs::File::open(file("png")).expect("a PNG file"));
    let reader = png::Decoder::new(png).read_info().expect("a PNG file");
    let png = [reader.info().width, reader.info().height];
    Picture { windows: [display, data], pixels, channels, png }
}

impl Picture {
    /// Fails unless all pixels of this picture that are in the other one have the same bits.
    fn assert_agrees(&self, other: &Self, what: &str) -> usize {
        assert_eq!(self.channels, other.channels, "{what}");
        let both = self
            .pixels
            .iter()
            .filter_map(|(place, bits)| Some((place, bits, other.pixels.get(place)?)));
        let mut count = 0;
        for (place, ours, theirs) in both {
            assert_eq!(ours, theirs, "{what}: {place:?} of {:?}", self.channels);
            count += 1;
        }
        count
    }
}

const FRAME: [&str; 10] = [
    "--size",
    "128x90",
    "--depth",
    "3",
    "--aov",
    "albedo,normal,depth,position",
    "--format",
    "exr,png",
    "--seed",
    "3",
];

fn submit(farm: &Farm, spp: &str, more: &[&str]) -> String {
    farm.submit(&library("cornell-box.gltf"), &[&FRAME[..], &["--spp", spp], more].concat())
}

fn finished(farm: &Farm, job: &str) -> Picture {
    farm.text(&["wait", job]);
    let folder = farm.folder().join(format!("out-{job}"));
    farm.text(&["fetch", job, "-o", folder.to_str().expect("a UTF-8 path")]);
    read(&folder)
}

fn picture(farm: &Farm, more: &[&str]) -> Picture {
    finished(farm, &submit(farm, "4", more))
}

fn units(farm: &Farm, job: &str) -> (u64, u64) {
    let detail: serde_json::Value =
        serde_json::from_str(&farm.text(&["job", job, "--json"])).expect("JSON");
    let number = |field: &str| detail["summary"][field].as_u64().expect("a number");
    (number("units"), number("units_committed"))
}

/// Four crops that make the frame. Their edges lie within tiles.
const MOSAIC: [([i64; 4], &str); 4] = [
    ([0, 0, 53, 29], "0,0,53x29"),
    ([53, 0, 75, 29], "53,0,75x29"),
    ([0, 29, 53, 61], "0,29,53x61"),
    ([53, 29, 75, 61], "53,29,75x61"),
];

// promise: P5
#[test]
fn a_mosaic_of_crops_has_the_bits_of_the_frame() {
    let one = Farm::start(1, 1);
    let two = Farm::start(2, 1);
    for denoise in [&[][..], &["--denoise"]] {
        let whole = picture(&one, denoise);
        assert_eq!(whole.windows, [[0, 0, 128, 90]; 2]);
        let work: [(&Farm, &[&str]); 4] = [
            (&two, &["--tile", "16", "--unit-samples", "3"]),
            (&one, &["--tile", "33"]),
            (&two, &["--tile", "100", "--unit-samples", "1"]),
            (&one, &["--tile", "8", "--unit-samples", "2"]),
        ];
        let mut count = 0;
        for ((data, crop), (farm, more)) in MOSAIC.into_iter().zip(work) {
            let options = [denoise, more, &["--crop", crop]].concat();
            let part = picture(farm, &options);
            assert_eq!(part.windows, [[0, 0, 128, 90], data]);
            assert_eq!(part.png, [data[2] as u32, data[3] as u32]);
            count += part.assert_agrees(&whole, &options.join(" "));
        }
        assert_eq!(count, 128 * 90, "the crops are the whole frame");
    }
}

#[test]
fn overscan_adds_pixels_and_changes_none() {
    let farm = Farm::start(2, 1);
    for denoise in [&[][..], &["--denoise"]] {
        let with = |more: &[&str]| picture(&farm, &[denoise, more].concat());
        let whole = with(&[]);
        let wide = with(&["--overscan", "50", "--tile", "24"]);
        assert_eq!(wide.windows, [[0, 0, 128, 90], [-50, -50, 228, 190]]);
        assert_eq!(wide.png, [228, 190]);
        assert_eq!(wide.assert_agrees(&whole, "overscan"), 128 * 90);
        // Across the frame's corner, and within the frame.
        for (crop, data) in [("100,2,28x9", [95, -3, 38, 19]), ("40,30,20x10", [35, 25, 30, 20])] {
            let part = with(&["--crop", crop, "--overscan", "5", "--unit-samples", "1"]);
            assert_eq!(part.windows, [[0, 0, 128, 90], data]);
            assert_eq!(part.png, [data[2] as u32, data[3] as u32]);
            assert_eq!(part.assert_agrees(&wide, crop) as i64, data[2] * data[3]);
        }
    }
}

// promise: P2
#[test]
fn a_crop_survives_a_restart_and_counts_its_own_units() {
    let mut farm = Farm::start(2, 1);
    let submit = |farm: &Farm, more: &[&str]| {
        submit(farm, "512", &[&["--tile", "16", "--unit-samples", "32"], more].concat())
    };
    // Columns 2 to 4 and rows 1 and 2 of 16 px tiles, in 16 passes.
    let crop = submit(&farm, &["--crop", "40,20,27x20"]);
    farm.wait_for("a unit of the crop", |farm| units(farm, &crop).1 > 0);
    farm.kill_coordinator();
    farm.start_coordinator();
    let part = finished(&farm, &crop);
    assert_eq!(units(&farm, &crop), (6 * 16, 6 * 16));
    let listed = farm.text(&["job", &crop]);
    assert!(listed.contains("crop 40,20,27x20"), "{listed}");
    let whole = submit(&farm, &[]);
    let whole = finished(&farm, &whole);
    assert_eq!(part.assert_agrees(&whole, "after a restart"), 27 * 20);
}
