//! Live tiles of a real farm: a viewer sees the frame that becomes, and the frame's bits are those
//! of a frame that nobody watched.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use tessera_support::farm::{Farm, library};

const SIZE: (usize, usize) = (200, 150);

/// A picture as tev has it: R, G and B of each pixel, of those that were set.
type Picture = BTreeMap<(usize, usize), [f32; 3]>;

/// A packet of tev's protocol that is read from the front.
struct Packet(Vec<u8>, usize);

impl Packet {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let bytes = self.0[self.1..self.1 + N].try_into().expect("as many bytes");
        self.1 += N;
        bytes
    }

    fn number(&mut self) -> usize {
        u32::from_le_bytes(self.take()) as usize
    }

    fn large(&mut self) -> usize {
        u64::from_le_bytes(self.take()) as usize
    }

    fn text(&mut self) -> String {
        let end = self.0[self.1..].iter().position(|byte| *byte == 0).expect("the text ends");
        let text = String::from_utf8(self.0[self.1..self.1 + end].to_vec()).expect("UTF-8");
        self.1 += end + 1;
        text
    }
}

/// Takes what tev would be sent, until the other side ends. Returns the pictures and the number of
/// updates.
fn tev(mut stream: TcpStream) -> (BTreeMap<String, Picture>, usize) {
    let (mut pictures, mut updates) = (BTreeMap::new(), 0);
    let mut length = [0; 4];
    while stream.read_exact(&mut length).is_ok() {
        let mut bytes = vec![0; u32::from_le_bytes(length) as usize - 4];
        stream.read_exact(&mut bytes).expect("a whole packet");
        let mut packet = Packet(bytes, 0);
        let [kind, _grabs_focus] = packet.take();
        let name = packet.text();
        match kind {
            4 => {
                assert_eq!((packet.number(), packet.number()), SIZE);
                let channels = packet.number();
                let names: Vec<String> = (0..channels).map(|_| packet.text()).collect();
                assert_eq!(names, ["R", "G", "B"]);
                assert!(pictures.insert(name, Picture::new()).is_none(), "it is made once");
            }
            6 => {
                let picture = pictures.get_mut(&name).expect("it was made before");
                update(&mut packet, picture);
                updates += 1;
            }
            other => panic!("a packet of kind {other}"),
        }
    }
    (pictures, updates)
}

fn update(packet: &mut Packet, picture: &mut Picture) {
    let channels = packet.number();
    let names: Vec<String> = (0..channels).map(|_| packet.text()).collect();
    assert_eq!(names, ["R", "G", "B"]);
    let [x, y, width, height] = [(); 4].map(|()| packet.number());
    let offsets: Vec<usize> = (0..channels).map(|_| packet.large()).collect();
    let strides: Vec<usize> = (0..channels).map(|_| packet.large()).collect();
    let rest = packet.0[packet.1..].chunks_exact(4);
    let values: Vec<f32> =
        rest.map(|four| f32::from_le_bytes(four.try_into().expect("four"))).collect();
    for pixel in 0..width * height {
        let color = [0, 1, 2].map(|channel| values[offsets[channel] + pixel * strides[channel]]);
        picture.insert((x + pixel % width, y + pixel / width), color);
    }
}

/// The colours of a frame's file.
fn colors(folder: &Path) -> Vec<[f32; 3]> {
    let mut files = std::fs::read_dir(folder).expect("a folder").flatten();
    let file = files.next().expect("a file").path();
    let image = exr::prelude::read_first_flat_layer_from_file(file).expect("an EXR file");
    let list = &image.layer_data.channel_data.list;
    let plane = |name: &str| -> Vec<f32> {
        let channel = list.iter().find(|channel| channel.name.to_string() == name);
        channel.expect("the channel").sample_data.values_as_f32().collect()
    };
    let (r, g, b) = (plane("R"), plane("G"), plane("B"));
    (0..r.len()).map(|at| [r[at], g[at], b[at]]).collect()
}

#[test]
fn a_viewer_sees_the_frame_that_becomes_and_no_bit_changes() {
    let mut farm = Farm::prepare();
    farm.start_coordinator();
    let size = format!("{}x{}", SIZE.0, SIZE.1);
    let options = ["--size", &size, "--spp", "48", "--tile", "64", "--name", "shown"];
    let scene = library("cornell-box.gltf");
    let job = farm.submit(&scene, &options);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it listens").to_string();
    let watching = farm.spawn(farm.command(&["watch", &job, "--tev", &address]), "watch");
    let (stream, _) = listener.accept().expect("the command connects");
    let shown = std::thread::spawn(move || tev(stream));
    // The command asks for the tiles before a node can have made one.
    farm.add_node("rig", 1);
    let hashes = farm.hashes(&job);
    let mut watching = watching;
    assert_eq!(watching.wait(), Some(0), "{}", farm.logs());
    let (pictures, updates) = shown.join().expect("packets of tev's protocol");
    let [(name, picture)] = pictures.into_iter().collect::<Vec<_>>().try_into().expect("one frame");
    assert_eq!(name, "shown.0000");
    let out = farm.folder().join("out");
    farm.text(&["fetch", &job, "-o", out.to_str().expect("UTF-8")]);
    let file = colors(&out);
    let whole = SIZE.0 * SIZE.1;
    println!("{updates} tiles came, with {} of {whole} pixels", picture.len());
    let is_right = |((x, y), live): (&(usize, usize), &[f32; 3])| {
        let values = live.iter().zip(file[y * SIZE.0 + x]);
        // A half float has 11 bits.
        values.into_iter().all(|(live, value)| (live - value).abs() <= value.abs() / 900.0 + 1e-4)
    };
    let right = picture.iter().filter(|pixel| is_right(*pixel)).count();
    // Live tiles may be lost, and hardly are.
    assert!(right * 10 > whole * 9, "{right} of {whole} pixels are right\n{}", farm.logs());
    let unwatched = farm.submit(&scene, &options);
    assert_eq!(farm.hashes(&unwatched), hashes, "watching changes no bit");
}

#[test]
fn a_viewer_that_is_not_there_is_said_at_once() {
    let farm = Farm::start(0, 1);
    let job = farm.submit(&library("cornell-box.gltf"), &["--size", "16x16", "--spp", "1"]);
    let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = free.local_addr().expect("it listens").to_string();
    drop(free);
    let output = farm.run(&["watch", &job, "--tev", &address]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("tev does not answer") && text.contains("hint: start tev"), "{text}");
}
