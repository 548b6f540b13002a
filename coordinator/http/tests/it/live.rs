//! Live tiles: from a node that does as it is told, over a real coordinator, to a client of HTTP.

use crate::farm::{Farm, PATIENCE};
use crate::metrics::node::{Node, submit_tiles};
use crate::metrics::page::Page;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};
use tessera_protocol::client::{Request, Role};
use tessera_protocol::live::{LIVE_BYTES_MAX, LiveTile, LiveValues, Watched};
use tessera_protocol::node::{Assignment, CoordinatorToNode, SampleRange, Task};
use tessera_protocol::stream::StreamKind;
use tessera_protocol::{Epoch, FrameNumber, JobId, Lease};
use tessera_transport::error::Ended;
use tessera_transport::frame::open_one_way;
use tessera_transport::{CloseCode, FarmClient};

/// Edge of a tile whose mean is as long as a mean can be.
const EDGE: u32 = 64;

const HEAD: u32 = 0;
const TILE: u32 = 1;
const END: u32 = 3;

/// A message: its kind, its numbers and its values.
#[derive(Debug)]
struct Message {
    kind: u32,
    numbers: Vec<u32>,
    values: Vec<u8>,
}

/// A client's stream of live tiles.
struct Stream {
    reader: BufReader<TcpStream>,
    bytes: Vec<u8>,
}

impl Stream {
    fn open(farm: &Farm, token: &str, job: JobId) -> Self {
        let path = format!("/api/v1/jobs/{job}/frames/0/live");
        let headers = format!("Authorization: Bearer {token}\r\n");
        let mut reader = BufReader::new(farm.open(&path, &headers));
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert!(line.contains("200"), "{line}");
        while line != "\r\n" {
            line.clear();
            reader.read_line(&mut line).unwrap();
        }
        Self { reader, bytes: Vec::new() }
    }

    /// Takes the next bytes of the chunked body.
    fn take(&mut self, count: usize) -> Vec<u8> {
        while self.bytes.len() < count {
            let mut line = String::new();
            self.reader.read_line(&mut line).unwrap();
            let length = usize::from_str_radix(line.trim(), 16).expect("the length of a chunk");
            assert!(length > 0, "the stream ends within a message");
            let mut chunk = vec![0; length + 2];
            self.reader.read_exact(&mut chunk).unwrap();
            self.bytes.extend_from_slice(&chunk[..length]);
        }
        self.bytes.drain(..count).collect()
    }

    fn number(&mut self) -> u32 {
        u32::from_le_bytes(self.take(4).try_into().unwrap())
    }

    fn next(&mut self) -> Message {
        let length = self.number() as usize;
        let kind = self.number();
        let count = match kind {
            HEAD => 3,
            TILE => 8,
            _ => 0,
        };
        let numbers: Vec<u32> = (0..count).map(|_| self.number()).collect();
        let values = self.take(length - 4 * (1 + count));
        Message { kind, numbers, values }
    }

    /// The next message that says more than that the stream lives.
    fn told(&mut self) -> Message {
        loop {
            let message = self.next();
            if message.kind != 2 {
                return message;
            }
        }
    }
}

/// The live tile that a node may send for a unit.
fn live_tile(work: &Assignment, byte: u8) -> LiveTile {
    let Task::Tile { tile, samples } = work.task else { panic!("{work:?}") };
    let values = LiveValues(vec![byte; LIVE_BYTES_MAX]);
    LiveTile { lease: work.lease(), tile, samples, values }
}

impl Node {
    /// Sends a live tile.
    async fn show(&self, tile: &LiveTile) {
        let kind = StreamKind::LiveTile;
        let mut stream = open_one_way(&self.link.connection, kind).await.unwrap();
        stream.send(tile).await.unwrap();
        stream.finish();
    }

    /// Waits until it is told what is watched.
    async fn is_told(&mut self) -> Vec<Watched> {
        loop {
            if let CoordinatorToNode::Watched { watched } = self.hear().await {
                return watched;
            }
        }
    }

    /// Waits until a result is acknowledged.
    async fn is_committed(&mut self, lease: Lease) {
        loop {
            match self.hear().await {
                CoordinatorToNode::Committed { lease: of } if of == lease => return,
                CoordinatorToNode::Unwanted { lease: of } => panic!("{of} is not wanted"),
                _ => {}
            }
        }
    }
}

/// A farm with a job of so many tiles, and who has submitted it.
struct Scene {
    farm: Farm,
    token: String,
    client: FarmClient,
    job: JobId,
}

impl Scene {
    async fn start(folder: &Path, tiles: u32) -> Self {
        let farm = Farm::start_in(folder, |_| {}).await;
        let ada = farm.person(Role::Artist, "ada");
        let token = farm.token(&ada).await;
        let client = FarmClient::new(farm.dial(&ada).await.unwrap());
        let job = submit_tiles(&client, folder, (tiles, EDGE)).await;
        Self { farm, token, client, job }
    }

    /// Scrapes until live tiles with these outcomes were counted.
    async fn until(&self, counts: &[(&str, u32)]) {
        let row = |outcome| format!("tessera_live_tiles_total{{outcome=\"{outcome}\"}}");
        let holds = |page: &Page| {
            counts.iter().all(|(outcome, count)| page.of(&row(outcome)) == f64::from(*count))
        };
        let token = self.farm.scraper().await;
        self.farm.until(&token, &format!("{counts:?}"), holds).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tile_is_seen_within_a_second_of_its_commit() {
    let folder = tempfile::tempdir().unwrap();
    let scene = Scene::start(folder.path(), 3).await;
    let mut node = Node::join(&scene.farm, "n1").await;
    let first = node.work().await;
    // The lease was there before anybody watched.
    let mut stream = Stream::open(&scene.farm, &scene.token, scene.job);
    let head = stream.told();
    assert_eq!((head.kind, head.numbers.as_slice()), (HEAD, [3 * EDGE, EDGE, 3].as_slice()));
    let frame = Some(FrameNumber(0));
    assert_eq!(node.is_told().await, [Watched { job: scene.job, frame }]);
    node.show(&live_tile(&first, 1)).await;
    node.deliver_tile(first.lease(), EDGE, 1).await;
    let delivered = Instant::now();
    let told = stream.told();
    let took = delivered.elapsed();
    let unit = first.lease().unit.unit.0;
    assert_eq!(told.numbers, [unit, unit * EDGE, 0, EDGE, EDGE, 0, 1, 1]);
    assert_eq!(told.values, vec![1; LIVE_BYTES_MAX]);
    assert!(took < Duration::from_secs(1), "{took:?} after its result was sent");
    let second = node.work().await;
    node.deliver_tile(second.lease(), EDGE, 1).await;
    node.is_committed(second.lease()).await;
    // It is late, and of a lease that was just there.
    node.show(&live_tile(&second, 2)).await;
    assert_eq!(stream.told().values[0], 2);
    let mut later = Stream::open(&scene.farm, &scene.token, scene.job);
    assert_eq!([later.told().kind, later.told().kind, later.told().kind], [HEAD, TILE, TILE]);
    let third = node.work().await;
    node.deliver_tile(third.lease(), EDGE, 1).await;
    assert_eq!(stream.told().kind, END, "the frame is finished");
    assert_eq!(later.told().kind, END);
    scene.until(&[("passed", 2), ("foreign", 0), ("unwatched", 0)]).await;
    assert_eq!(node.is_told().await, [], "nodes send no more of it");
    let mut over = Stream::open(&scene.farm, &scene.token, scene.job);
    assert_eq!([over.told().kind, over.told().kind], [HEAD, END]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_farm_that_nobody_watches_says_nothing_to_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let scene = Scene::start(folder.path(), 2).await;
    let mut node = Node::join(&scene.farm, "n1").await;
    for _ in 0..2 {
        let work = loop {
            match node.hear().await {
                CoordinatorToNode::Work(work) => break work[0],
                CoordinatorToNode::Watched { watched } => panic!("{watched:?}"),
                _ => {}
            }
        };
        node.deliver_tile(work.lease(), EDGE, 1).await;
    }
    let token = scene.farm.scraper().await;
    let done = |page: &Page| page.of("tessera_jobs{state=\"done\"}") == 1.0;
    let page = scene.farm.until(&token, "the job is done", done).await;
    let live = page.values.iter().filter(|(row, _)| row.starts_with("tessera_live_"));
    let live: Vec<_> = live.collect();
    assert!(live.len() == 8 && live.iter().all(|(_, count)| **count == 0.0), "{live:?}");
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn live_tiles_that_a_node_may_not_send_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let scene = Scene::start(folder.path(), 4).await;
    let mut node = Node::join(&scene.farm, "n1").await;
    let work = node.work().await;
    let mine = live_tile(&work, 1);
    node.show(&mine).await;
    scene.until(&[("unwatched", 1)]).await;
    let mut stream = Stream::open(&scene.farm, &scene.token, scene.job);
    assert_eq!(stream.told().kind, HEAD);
    node.is_told().await;
    let mut other = Node::join(&scene.farm, "n2").await;
    other.show(&mine).await;
    node.show(&LiveTile { lease: Lease { epoch: Epoch(1 << 40), ..mine.lease }, ..mine.clone() })
        .await;
    scene.until(&[("foreign", 2)]).await;
    let mut moved = mine.clone();
    moved.tile.x += EDGE;
    node.show(&moved).await;
    let samples = SampleRange { first: 0, count: 2 };
    node.show(&LiveTile { samples, ..mine.clone() }).await;
    scene.until(&[("wrong", 2)]).await;
    for _ in 0..3 {
        node.show(&mine).await;
    }
    scene.until(&[("passed", 1), ("repeated", 2)]).await;
    assert_eq!(stream.told().values, mine.values.0);
    // The session goes on, and the work counts.
    node.deliver_tile(work.lease(), EDGE, 1).await;
    node.is_committed(work.lease()).await;
    let work = other.work().await;
    let short = LiveTile { values: LiveValues(vec![0; 6]), ..live_tile(&work, 1) };
    let kind = StreamKind::LiveTile;
    let mut long = open_one_way(&node.link.connection, kind).await.unwrap();
    long.send_raw(&(LIVE_BYTES_MAX as u32 + 4096).to_le_bytes()).await.unwrap();
    other.show(&short).await;
    for node in [&node, &other] {
        let ended = tokio::time::timeout(PATIENCE, node.link.connection.closed()).await;
        match Ended::from(ended.expect("the connection is closed in time")) {
            Ended::Closed { code: Some(CloseCode::Protocol), .. } => {}
            other => panic!("{other:?}"),
        }
    }
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn who_reads_live_tiles_slowly_holds_up_nobody() {
    const TILES: u32 = 150;
    let folder = tempfile::tempdir().unwrap();
    let scene = Scene::start(folder.path(), TILES).await;
    let mut stuck: Vec<Stream> =
        (0..3).map(|_| Stream::open(&scene.farm, &scene.token, scene.job)).collect();
    let mut node = Node::join(&scene.farm, "n1").await;
    node.is_told().await;
    let mut longest = Duration::ZERO;
    for _ in 0..TILES {
        let work = node.work().await;
        node.show(&live_tile(&work, 1)).await;
        let began = Instant::now();
        node.deliver_tile(work.lease(), EDGE, 1).await;
        node.is_committed(work.lease()).await;
        longest = longest.max(began.elapsed());
    }
    println!("the longest of {TILES} commits took {longest:?}, beside three that read nothing");
    assert!(longest < Duration::from_secs(5), "{longest:?}");
    scene.until(&[("passed", TILES)]).await;
    // What was kept for them is still there, in order.
    for stream in &mut stuck {
        let mut tiles = 0;
        loop {
            match stream.told().kind {
                TILE => tiles += 1,
                END => break,
                _ => {}
            }
        }
        assert_eq!(tiles, TILES);
    }
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn live_tiles_are_for_all_who_see_frames_and_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let scene = Scene::start(folder.path(), 1).await;
    let (farm, job) = (&scene.farm, scene.job);
    let viewer = farm.token(&farm.person(Role::Viewer, "vera")).await;
    let path = format!("/api/v1/jobs/{job}/frames/0/live");
    let nobody = farm.request(("GET", &path), "", None).await;
    assert_eq!(nobody.status, 401, "{}", nobody.text());
    for wrong in [
        format!("/api/v1/jobs/{}/frames/0/live", JobId::new()),
        format!("/api/v1/jobs/{job}/frames/7/live"),
        format!("/api/v1/jobs/{job}/frames/x/live"),
    ] {
        let answer = farm.send(&viewer, ("GET", &wrong), None).await;
        assert_eq!(answer.status, 404, "{wrong}: {}", answer.text());
    }
    let hers: Vec<Stream> = (0..16).map(|_| Stream::open(farm, &viewer, job)).collect();
    let more = farm.send(&viewer, ("GET", &path), None).await;
    assert_eq!(more.status, 503, "{}", more.text());
    assert!(more.text().contains("16 frames and jobs are watched live for you"), "{}", more.text());
    assert_eq!(Stream::open(farm, &scene.token, job).told().kind, HEAD, "others have theirs");
    drop(hers);
    let root = farm.person(Role::Admin, "root");
    let mut denied = Stream::open(farm, &scene.token, job);
    assert_eq!(denied.told().kind, HEAD);
    farm.ask(&root, Request::Deny { identity: "user:ada".into(), reason: String::new() }).await;
    // Its rights are looked at with each beat.
    let mut rest = Vec::new();
    denied.reader.read_to_end(&mut rest).unwrap();
    drop(scene.client);
}
