//! Tests of the fetch of inputs, against a listening coordinator that answers as it is told.

use super::*;
use crate::frame_memory::FrameMemory;
use tessera_finishing::{Films, write_part_head};
use tessera_protocol::client::Role;
use tessera_protocol::node::Assignment;
use tessera_protocol::{Fingerprint, Hello, NodeId, TileSums};
use tessera_transport::frame::accept_kind;
use tessera_transport::{
    Authority, CloseCode, FrameSender, Identity, Link, PeerIdentity, Server, Timing, connect,
};

/// Longest wait of the node for bytes.
const ANSWER: Duration = Duration::from_millis(400);

fn lease() -> Lease {
    let unit: Assignment = crate::job::tests::assignment(1, 12);
    unit.lease()
}

fn hello() -> Hello {
    Hello::ours(Fingerprint([5; 32]))
}

/// What the coordinator does with a request.
enum Answer {
    /// It announces so many parts and bytes, sends these bytes, and ends the stream.
    Gives(u32, u64, Vec<u8>),
    /// It sends these bytes of so many, and gives the stream up.
    Cuts(u64, Vec<u8>),
    /// It sends these bytes of so many, and no more.
    FallsSilent(u64, Vec<u8>),
    Refuses(&'static str),
    /// The connection ends.
    IsLost,
}
use Answer::*;

/// A coordinator, a node's fetcher, and the node's folder.
struct Farm {
    server: Server,
    identity: Identity,
    sessions: watch::Sender<Option<Connection>>,
    fetcher: InputsFetcher,
    folder: tempfile::TempDir,
}

impl Farm {
    fn start() -> Self {
        let authority = Authority::generate().unwrap();
        let timing = Timing::default();
        let server = Server::bind("127.0.0.1:0".parse().unwrap(), &authority, timing).unwrap();
        let id = NodeId(uuid::Uuid::from_u128(3));
        let identity =
            authority.issue(&PeerIdentity::new(Role::Node, "n", Some(id)).unwrap()).unwrap();
        let (sessions, connections) = watch::channel(None);
        let folder = tempfile::tempdir().unwrap();
        let fetcher = InputsFetcher::new(folder.path().to_owned(), connections, ANSWER);
        Self { server, identity, sessions, fetcher, folder }
    }

    /// Begins a session. Returns both ends: the coordinator's, then the node's.
    async fn session(&self) -> (Link, Link) {
        let (address, ours) = (self.server.local_address().unwrap().into(), hello());
        let served = async { self.server.accept().await.unwrap().establish(&ours).await };
        let dialled = connect(&address, &self.identity, &ours, Timing::default());
        let (served, dialled) = tokio::join!(served, dialled);
        let (served, dialled) = (served.unwrap(), dialled.unwrap());
        served.welcome();
        self.sessions.send_replace(Some(dialled.connection.clone()));
        (served, dialled)
    }

    /// Fetches while the coordinator answers one request after another in this way. Returns the
    /// result, and the number of answers that nobody asked for.
    async fn fetch(
        &self,
        served: &Link,
        answers: Vec<Answer>,
        most: Most,
    ) -> (Result<Inputs, InputsError>, usize) {
        let mut left = answers.len();
        let mut kept = Vec::new();
        let serving = async {
            for answer in answers {
                kept.extend(answer_next(served, answer).await);
                left -= 1;
            }
            std::future::pending::<()>().await;
        };
        let fetched = tokio::select! {
            fetched = self.fetcher.fetch(lease(), most) => fetched,
            () = serving => unreachable!("it never ends"),
        };
        (fetched, left)
    }

    /// Fetches with one session.
    async fn fetch_all(&self, answers: Vec<Answer>) -> Result<Inputs, InputsError> {
        let (served, _node) = self.session().await;
        let (fetched, left) = self.fetch(&served, answers, MOST).await;
        assert_eq!(left, 0, "it asks as often as it should");
        fetched
    }
}

const MOST: Most = Most { parts: 4, part_bytes: 1 << 20, is_bands: false };

/// Answers the next request. Returns the stream if it stays open.
async fn answer_next(served: &Link, answer: Answer) -> Option<FrameSender> {
    let (sender, receiver) = served.connection.accept_bi().await.unwrap();
    let (kind, mut receiver) = accept_kind(receiver, Duration::from_secs(9)).await.unwrap();
    assert_eq!(kind, StreamKind::FinishInputs);
    let request: InputsRequest = receiver.expect(Duration::from_secs(9)).await.unwrap();
    assert_eq!(request.lease, lease());
    let mut sender = FrameSender::new(sender);
    let (parts, announced, bytes) = match &answer {
        Gives(parts, announced, bytes) => (*parts, *announced, bytes.as_slice()),
        Cuts(announced, bytes) | FallsSilent(announced, bytes) => (1, *announced, bytes.as_slice()),
        Refuses(reason) => {
            sender.send(&InputsReply::Refused((*reason).into())).await.unwrap();
            sender.finish();
            return Some(sender);
        }
        IsLost => {
            served.connection.close(CloseCode::Failed.into(), b"gone");
            return None;
        }
    };
    sender.send(&InputsReply::Inputs { parts, bytes: announced }).await.unwrap();
    // The node may have enough of it before the end.
    let _ = sender.send_raw(bytes).await;
    match answer {
        Cuts(..) => sender.reset(CloseCode::Failed),
        FallsSilent(..) => {}
        _ => sender.finish(),
    }
    Some(sender)
}

/// Returns the film of a tile of the job, in which all sums are a number.
fn film(value: i64) -> TileSums {
    let spec = crate::job::tests::spec(b"");
    let mut sums = TileSums::empty(16, 16, spec.channels());
    sums.samples = 2;
    sums.values.fill(value);
    sums
}

/// Returns parts as they come over the wire.
fn parts(films: &[(u32, i64)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (tile, value) in films {
        let film = film(*value).to_bytes();
        bytes.extend(write_part_head(*tile, film.len() as u32));
        bytes.extend(film);
    }
    bytes
}

/// An answer with one film.
fn good() -> Answer {
    let bytes = parts(&[(3, 7)]);
    Gives(1, bytes.len() as u64, bytes)
}

#[tokio::test]
async fn inputs_arrive_and_leave_nothing_behind() {
    let farm = Farm::start();
    let bytes = parts(&[(3, 7), (5, 1), (3, 30)]);
    let inputs = farm.fetch_all(vec![Gives(3, bytes.len() as u64, bytes)]).await.unwrap();
    let sums = inputs.sums(3).unwrap();
    assert_eq!((sums.samples, sums.values), (4, film(37).values), "two parts of one tile");
    assert_eq!(inputs.sums(5).unwrap(), film(1));
    assert!(inputs.sums(4).is_err(), "it was not sent");
    drop(inputs);
    assert_eq!(std::fs::read_dir(farm.folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_refusal_fails_with_its_reason() {
    let farm = Farm::start();
    let error = farm.fetch_all(vec![Refuses("the lease has ended")]).await.unwrap_err();
    let failure = error.into_failure("inputs of band 3 of frame 7");
    let expected = "inputs of band 3 of frame 7 not fetched: the coordinator refuses them: the \
        lease has ended";
    assert_eq!(failure, Failure::Asset(expected.into()));
}

#[tokio::test]
async fn too_many_bytes_are_refused_before_they_come() {
    let farm = Farm::start();
    for (parts, bytes) in [(5, 100), (1, (1 << 20) + 9), (0, 1), (u32::MAX, u64::MAX)] {
        let error = farm.fetch_all(vec![Gives(parts, bytes, vec![0; 100])]).await.unwrap_err();
        assert!(matches!(error, InputsError::TooMuch { .. }), "{error:?}");
        // The node is not at fault, and no wait helps.
        assert!(matches!(error.into_failure("inputs"), Failure::Kernel(_)));
    }
}

#[tokio::test]
async fn a_stream_that_fails_is_tried_again() {
    let farm = Farm::start();
    let failing: [fn() -> Answer; 5] = [
        || Cuts(100_000, vec![1; 70_000]),
        || FallsSilent(100, vec![1; 50]),
        || Gives(1, 100, vec![1; 99]),
        || Gives(1, 100, vec![1; 101]),
        // A part that is longer than the rest.
        || Gives(1, 100, [&write_part_head(3, 1000)[..], &[1; 92]].concat()),
    ];
    for fails in failing {
        let inputs = farm.fetch_all(vec![fails(), good()]).await.unwrap();
        assert_eq!(inputs.sums(3).unwrap(), film(7));
    }
    let often = (0..TRIES_MAX).map(|_| Cuts(9, vec![1; 3])).collect();
    let error = farm.fetch_all(often).await.unwrap_err();
    assert!(matches!(error, InputsError::Stream(FrameError::Reset(_))), "{error:?}");
}

#[tokio::test]
async fn a_lost_connection_waits_for_the_next_session() {
    let farm = Farm::start();
    let (first, node) = farm.session().await;
    let next = async {
        // Lost connections are no failed tries, however many there are.
        let (mut served, mut node) = (first, node);
        for _ in 0..=TRIES_MAX {
            answer_next(&served, IsLost).await;
            node.connection.closed().await;
            farm.sessions.send_replace(None);
            (served, node) = farm.session().await;
        }
        // The coordinator has not read the node's join yet.
        let refused = answer_next(&served, Refuses("no such lease")).await;
        let given = answer_next(&served, good()).await;
        // The rest is on the way.
        std::future::pending::<()>().await;
        drop((refused, given, node));
    };
    let fetched = tokio::select! {
        fetched = farm.fetcher.fetch(lease(), MOST) => fetched,
        () = next => unreachable!("it never ends"),
    };
    assert_eq!(fetched.unwrap().sums(3).unwrap(), film(7));
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_fails_at_once() {
    let mut farm = Farm::start();
    farm.fetcher.folder = farm.folder.path().join("gone");
    let error = farm.fetch_all(vec![good()]).await.unwrap_err();
    assert!(matches!(error, InputsError::Disk { .. }), "{error:?}");
    let full =
        InputsError::Disk { path: "inputs".into(), source: io::ErrorKind::StorageFull.into() };
    assert!(matches!(full.into_failure("inputs"), Failure::Limit(_)));
}

#[tokio::test]
async fn a_node_that_stops_fetches_nothing() {
    let farm = Farm::start();
    let Farm { fetcher, sessions, .. } = farm;
    drop(sessions);
    let error = fetcher.fetch(lease(), MOST).await.unwrap_err();
    assert!(matches!(error, InputsError::Stopping), "{error:?}");
}

/// A frame of 640 × 192 pixels in tiles of 16, in bands of 128 rows.
fn banded() -> RenderSpec {
    RenderSpec { width: 1280, height: 200, ..crate::job::tests::spec(b"") }
}

fn finish(piece: Piece) -> Finish {
    Finish { piece, exposure_bits: 0 }
}

#[test]
fn no_unit_reads_more_than_its_frame_has() {
    let spec = banded();
    let band = Most::of(&spec, &finish(Piece::Band { first: 96, rows: 96 }));
    // 80 × 13 tiles with four samples, of 256 pixels each.
    let planes = 256 * u64::from(spec.channels()) * 8;
    let part_bytes = planes * 17 / 16 + 1024;
    assert_eq!(band, Most { parts: 80 * 13 * 4, part_bytes, is_bands: false });
    assert!(band.allows(4160, 4160 * (band.part_bytes + 8)));
    assert!(!band.allows(4160, 4160 * (band.part_bytes + 8) + 1) && !band.allows(4161, 0));
    let assembly = Most::of(&spec, &finish(Piece::Assembly));
    let part_bytes = RESULT_BYTES_MAX as u64;
    assert_eq!(assembly, Most { parts: 3, part_bytes, is_bands: true });
    let long = RenderSpec { spp: 1 << 20, ..spec };
    assert_eq!(Most::of(&long, &finish(Piece::Frame { rows: 200 })).parts, FRAME_UNITS_MAX);
}

#[test]
fn inputs_are_named_after_their_band() {
    let name = |piece| name_of(&banded(), FrameNumber(7), &finish(piece));
    assert_eq!(name(Piece::Band { first: 192, rows: 8 }), "inputs of band 2 of frame 7");
    assert_eq!(name(Piece::Frame { rows: 200 }), "inputs of frame 7");
    assert_eq!(name(Piece::Assembly), "bands of frame 7");
}

#[tokio::test]
async fn a_unit_that_does_not_fit_into_memory_is_postponed() {
    let farm = Farm::start();
    let (job, finish) = (banded(), finish(Piece::Band { first: 0, rows: 96 }));
    let needed = memory_of(&job, &finish);
    let memory = FrameMemory::new(8 << 40, 0);
    let others = memory.claim(false);
    others.expect((7 << 40) - needed + 1).unwrap();
    let (job, claim) = (Arc::new(JobKind::Render(job)), memory.claim(true));
    let prepared = farm.fetcher.prepare(lease(), (&job, finish), &claim).await;
    assert!(matches!(prepared, Err(NotPrepared::Postponed(_))), "{prepared:?}");
    drop(others);
    let (served, _node) = farm.session().await;
    let (prepared, kept) = tokio::join!(
        farm.fetcher.prepare(lease(), (&job, finish), &claim),
        answer_next(&served, good())
    );
    assert_eq!(prepared.unwrap().finish, finish);
    drop(kept);
}
