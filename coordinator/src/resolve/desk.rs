//! Orders for the files of frames on their way to nodes, and what the nodes report. Knows no
//! stream, and decides nothing.

use crate::finish_inputs::elsewhere::Placed;
use crate::spool::{AddressFor, ResultObject, ResultStore, SpoolExtent, SpoolKey};
use crate::sync::lock;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use tessera_core::SessionId;
use tessera_protocol::frame_files::{FilesOrder, FilesPurpose, FilesReport};
use tessera_protocol::{Fingerprint, RawJobSpec};
use tokio::sync::oneshot;

/// What a node is to do with the objects of a frame's files.
#[derive(Clone, Debug)]
pub(crate) enum Purpose {
    Put(Vec<ResultObject>),
    Compare(Vec<ResultObject>),
}

/// An order for the files of a frame, without the addresses, which do not hold for long.
#[derive(Clone, Debug)]
pub(crate) struct FilesWanted {
    pub(crate) key: SpoolKey,
    pub(crate) extent: SpoolExtent,
    pub(crate) spec: RawJobSpec,
    pub(crate) fingerprint: Option<Fingerprint>,
    pub(crate) samples: u32,
    pub(crate) samples_mean: Option<f64>,
    /// The pieces in order, each with its place in the spool.
    pub(crate) pieces: Vec<(u32, crate::finish_inputs::Entry)>,
    pub(crate) purpose: Purpose,
}

impl FilesWanted {
    /// Signs the addresses for a node. None if it cannot reach the store.
    pub(crate) fn order(self, store: &dyn ResultStore, here: bool) -> Option<FilesOrder> {
        let placed = Placed::of((self.key, &self.extent), self.pieces, (store, here))?;
        let signed = |objects: &[ResultObject], what| -> Option<Vec<String>> {
            let each = objects.iter().map(|object| store.address(self.key, *object, (what, here)));
            each.collect()
        };
        let purpose = match &self.purpose {
            Purpose::Put(objects) => FilesPurpose::Put(signed(objects, AddressFor::Writing)?),
            Purpose::Compare(objects) => {
                FilesPurpose::Compare(signed(objects, AddressFor::Reading)?)
            }
        };
        Some(FilesOrder {
            job: self.key.job,
            frame: self.key.frame,
            spec: Box::new(self.spec),
            fingerprint: self.fingerprint,
            samples: self.samples,
            samples_mean: self.samples_mean,
            addresses: placed.addresses,
            pieces: placed.parts,
            purpose,
        })
    }
}

/// An order that waits for its node.
struct Waiting {
    session: SessionId,
    wanted: FilesWanted,
    taken: oneshot::Sender<oneshot::Receiver<FilesReport>>,
}

/// All orders that wait for their nodes.
#[derive(Default)]
pub(crate) struct FilesDesk {
    waiting: Mutex<BTreeMap<u64, Waiting>>,
    numbers: AtomicU64,
}

/// An order at the desk, until this value is dropped.
pub(super) struct Placement<'a> {
    desk: &'a FilesDesk,
    pub(super) number: u64,
    /// Gets the receiver of the report once the node has asked for the order.
    pub(super) taken: oneshot::Receiver<oneshot::Receiver<FilesReport>>,
}

impl Drop for Placement<'_> {
    fn drop(&mut self) {
        self.desk.waiting().remove(&self.number);
    }
}

impl FilesDesk {
    fn waiting(&self) -> MutexGuard<'_, BTreeMap<u64, Waiting>> {
        lock(&self.waiting)
    }

    /// Lays an order down for the node of a session.
    pub(super) fn place(&self, session: SessionId, wanted: FilesWanted) -> Placement<'_> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let (tell, taken) = oneshot::channel();
        self.waiting().insert(number, Waiting { session, wanted, taken: tell });
        Placement { desk: self, number, taken }
    }

    /// Gives an order to the node of a session, with where its report goes. None if it has none of
    /// this number.
    pub(crate) fn take(
        &self,
        number: u64,
        session: SessionId,
    ) -> Option<(FilesWanted, oneshot::Sender<FilesReport>)> {
        let mut waiting = self.waiting();
        if waiting.get(&number)?.session != session {
            return None;
        }
        let Waiting { wanted, taken, .. } = waiting.remove(&number)?;
        let (tell, report) = oneshot::channel();
        taken.send(report).ok()?;
        Some((wanted, tell))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spool::contract::key;
    use tessera_protocol::{JobKind, RenderSpec};

    fn wanted() -> FilesWanted {
        FilesWanted {
            key: key(3),
            extent: SpoolExtent::default(),
            spec: RawJobSpec::from(&JobKind::Render(RenderSpec::default())),
            fingerprint: None,
            samples: 1,
            samples_mean: None,
            pieces: Vec::new(),
            purpose: Purpose::Put(Vec::new()),
        }
    }

    // promise: P8
    #[test]
    fn an_order_is_for_its_session_and_once() {
        let desk = FilesDesk::default();
        let mut placed = desk.place(SessionId(7), wanted());
        assert!(desk.take(placed.number, SessionId(8)).is_none(), "another node");
        assert!(desk.take(placed.number + 1, SessionId(7)).is_none(), "another order");
        let (_, tell) = desk.take(placed.number, SessionId(7)).unwrap();
        assert!(desk.take(placed.number, SessionId(7)).is_none(), "it is taken");
        let mut report = placed.taken.try_recv().unwrap();
        tell.send(FilesReport::Failed("x".into())).unwrap();
        assert_eq!(report.try_recv().unwrap(), FilesReport::Failed("x".into()));
        // One that nobody waits for any more is not given out.
        let number = desk.place(SessionId(7), wanted()).number;
        assert!(desk.take(number, SessionId(7)).is_none());
    }
}
