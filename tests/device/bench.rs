//! What the tests of devices share: a rack, a node's settings for it, a frame, and the sums that it
//! must have.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tessera_fake_cuda::{Config as RackConfig, Fault, FaultKind, Rack};
use tessera_kernels::host::{RayCounts, best_isa, render_unit};
use tessera_layout::UnitParams;
use tessera_node::device::cuda::Watchdog;
use tessera_node::device::{
    CancelToken, Device, DeviceError, DeviceUnit, Devices, PreparedFrame, UnitOutput, Work,
};
use tessera_node::{Config, DeviceSpec};
use tessera_scenes::{EnvironmentSource, FlattenOptions, LoadOptions};

/// A rack and the settings of a node that has it.
pub(crate) struct Bench {
    pub(crate) rack: Rack,
    pub(crate) config: Config,
    _data: tempfile::TempDir,
}

impl Bench {
    pub(crate) fn new(config: &RackConfig, devices: &str) -> Self {
        let rack = Rack::new(config).expect("a rack");
        let data = tempfile::tempdir().expect("a temporary folder");
        let mut config = Config::new("127.0.0.1:1", data.path().join("node"), "bench");
        config.devices =
            devices.split(',').map(|name| name.parse::<DeviceSpec>().expect("a device")).collect();
        config.threads = Some(1);
        config.worker = env!("CARGO_BIN_EXE_tessera").into();
        let environment = rack.environment().into_iter();
        let text = |value: std::ffi::OsString| {
            value.into_string().expect("paths of temporary folders are text")
        };
        config.worker_environment =
            environment.map(|(name, value)| (name.into(), text(value))).collect();
        let cache = data.path().join("cache").to_str().expect("text").to_owned();
        config.worker_environment.push(("CUDA_CACHE_PATH".into(), cache));
        // Interpreted kernels are slow, and this machine may be busy.
        config.watchdog = Watchdog { floor: Duration::from_secs(120), ..Watchdog::default() };
        Self { rack, config, _data: data }
    }

    /// One plain device that has this done to it.
    pub(crate) fn with(change: impl FnOnce(&mut tessera_fake_cuda::Device)) -> Self {
        let mut device = tessera_fake_cuda::Device::default();
        change(&mut device);
        Self::new(&RackConfig::of(1, device), "cuda")
    }

    pub(crate) fn open(&self) -> Devices {
        tessera_node::device::open(&self.config).expect("devices")
    }

    /// Why it cannot be opened, with every cause.
    pub(crate) fn refusal(&self) -> String {
        match tessera_node::device::open(&self.config) {
            Ok(_) => panic!("it was opened"),
            Err(error) => chain(&error),
        }
    }
}

/// Every launch of the compact kernel gives wrong sums. The staged kernels are left alone: a wrong
/// bit in their queues can be an index, and the device may stop at an illegal address before the
/// node has compared the answer of the unit before.
pub(crate) fn wrong_sums() -> Fault {
    Fault::new(FaultKind::WrongResult).times(0).at_kernel("tessera_render_paths")
}

pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// A small room, prepared once.
pub(crate) fn frame() -> Arc<PreparedFrame> {
    static FRAME: OnceLock<Arc<PreparedFrame>> = OnceLock::new();
    FRAME.get_or_init(|| another_frame(1)).clone()
}

/// The same room under another id, as another frame of a job would have.
pub(crate) fn another_frame(id: u64) -> Arc<PreparedFrame> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes/library");
    let environment = EnvironmentSource::Constant([0.2, 0.3, 0.4]);
    let options = LoadOptions { environment, ..LoadOptions::default() };
    prepared(&tessera_scenes::load(&folder, "cornell-box.gltf", &options).expect("a scene"), id)
}

/// The library's cube, held once and shown in two places.
pub(crate) fn instanced_frame(id: u64) -> Arc<PreparedFrame> {
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes/library/spinning-cube.gltf");
    let text = std::fs::read_to_string(library).expect("a file of the library");
    let mut file: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let nodes = file["nodes"].as_array_mut().expect("nodes");
    let cube = nodes.iter().find(|node| node["name"] == "cube").expect("a cube")["mesh"].clone();
    nodes.push(
        serde_json::json!({ "mesh": cube, "translation": [1.1, 0.7, 0.4], "rotation": [0.2, 0.5,
            0.1, 0.8] }),
    );
    let added = nodes.len() - 1;
    file["scenes"][0]["nodes"].as_array_mut().expect("nodes").push(added.into());
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("cubes.gltf"), file.to_string())
        .expect("the folder takes files");
    let environment = EnvironmentSource::Constant([0.2, 0.3, 0.4]);
    let options = LoadOptions { environment, instanced_from: 1, ..LoadOptions::default() };
    let scene = tessera_scenes::load(folder.path(), "cubes.gltf", &options).expect("a scene");
    prepared(&scene, id)
}

fn prepared(scene: &tessera_scenes::LoadedScene, id: u64) -> Arc<PreparedFrame> {
    let flat = scene.flatten(&FlattenOptions::still(64, 64)).expect("flattened");
    let checked = tessera_kernels::CheckedScene::new(Arc::new(flat)).expect("checked");
    Arc::new(PreparedFrame::new(checked, id))
}

/// A unit of 8 × 8 pixels in a frame of 64 × 64.
pub(crate) fn unit(index: u32) -> UnitParams {
    UnitParams {
        frame_width: 64,
        frame_height: 64,
        x: (index % 8 * 8) as i32,
        y: (index / 8 % 8 * 8) as i32,
        width: 8,
        height: 8,
        first_sample: index / 64,
        sample_count: 1,
        seed: 5,
        depth: 2,
        aovs: 5,
        filter: 1,
        frame: 1,
        ..UnitParams::default()
    }
}

/// The sums that every device must give for the room.
pub(crate) fn expected(params: &UnitParams) -> Vec<i64> {
    expected_of(&frame(), params)
}

/// Those that it must give for any frame.
pub(crate) fn expected_of(frame: &PreparedFrame, params: &UnitParams) -> Vec<i64> {
    let mut film = vec![0; (params.width * params.height * params.channels()) as usize];
    render_unit(best_isa(), &frame.scene, params, &mut film, &mut RayCounts::default())
        .expect("rendered");
    film
}

/// A unit that a device has.
pub(crate) struct Pending {
    pub(crate) cancel: CancelToken,
    result: std::sync::mpsc::Receiver<Result<UnitOutput, DeviceError>>,
}

impl Pending {
    pub(crate) fn end(self) -> Result<UnitOutput, DeviceError> {
        self.result.recv_timeout(Duration::from_secs(300)).expect("every unit ends")
    }
}

pub(crate) fn submit(
    device: &dyn Device,
    frame: &Arc<PreparedFrame>,
    params: UnitParams,
) -> Pending {
    let (sender, result) = std::sync::mpsc::channel();
    let cancel = CancelToken::default();
    let finish = Box::new(move |result| sender.send(result).expect("somebody waits"));
    let work = Work::Render { frame: frame.clone(), params };
    device.submit(DeviceUnit { work, cancel: cancel.clone(), finish });
    Pending { cancel, result }
}

/// Waits until something holds; what is asked of other processes takes its time.
pub(crate) fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(120);
    while !holds() {
        assert!(Instant::now() < until, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
