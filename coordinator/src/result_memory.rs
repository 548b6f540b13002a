//! Memory for results from their arrival until they are durable. Results take it as their bytes
//! arrive; each node has a share, so that one node cannot hold what others need.
//!
//! A node announces the length of a result, and the length is taken of the node's own share at
//! once: results of one node wait for each other, and for nobody else. Nodes send no more at a time
//! than the smallest share, so that bytes of a result that waits do not hold up those before it.
//!
//! From the memory of all, only bytes that have arrived are taken. One largest result is set aside
//! of it: when the rest is used up, the results that wait get it one after the other, so that one
//! of them always ends.

use crate::sync::lock;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tessera_protocol::NodeId;
use tessera_protocol::limits::RESULT_BYTES_MAX;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// KiB of the largest result.
const LARGEST_KIB: u32 = (RESULT_BYTES_MAX >> 10) as u32;
/// Least memory for results in KiB: the largest one, and some beside it.
const LEAST_KIB: u32 = LARGEST_KIB + (2 << 10);
/// Largest memory for results in KiB: one tebibyte.
const MOST_KIB: u32 = 1 << 30;
/// Time after which a result's arrival is told.
const SLOW: Duration = Duration::from_secs(10);
/// Pause between two warnings that results wait.
const WARN_PAUSE: Duration = Duration::from_secs(30);

/// Returns the KiB that a number of bytes takes.
fn kib(bytes: usize) -> u32 {
    bytes.div_ceil(1 << 10).max(1) as u32
}

/// The memory for results of one coordinator.
#[derive(Debug)]
pub(crate) struct ResultMemory {
    /// Memory of all in KiB, without that of one largest result.
    common: Arc<Semaphore>,
    /// The right to use the memory of one largest result.
    last: Arc<Semaphore>,
    /// Share of a node in KiB.
    share_kib: u32,
    nodes: Mutex<Nodes>,
}

#[derive(Debug, Default)]
struct Nodes {
    nodes: BTreeMap<NodeId, Holder>,
    warned: Option<Instant>,
}

#[derive(Debug)]
struct Holder {
    name: String,
    share: Arc<Semaphore>,
    /// Results that are arriving or not durable yet.
    results: BTreeMap<u64, Standing>,
}

/// One result.
#[derive(Debug)]
struct Standing {
    since: Instant,
    /// Memory that it has taken, in KiB.
    held_kib: u32,
    has_arrived: bool,
}

/// What a node has of the memory for results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) node: NodeId,
    pub(crate) name: String,
    /// Number of results that are arriving or not durable yet.
    pub(crate) results: usize,
    /// Memory of their bytes, in KiB.
    pub(crate) kib: u64,
    /// Age of the oldest one that is still arriving.
    pub(crate) arriving: Option<Duration>,
}

impl Held {
    /// Returns a note for people about results that arrive slowly.
    pub(crate) fn note(&self) -> Option<String> {
        let age = self.arriving.filter(|age| *age >= SLOW)?.as_secs();
        let mib = self.kib.div_ceil(1 << 10);
        Some(match self.results {
            1 => format!("a result has been arriving for {age} s ({mib} MiB of it are here)"),
            more => format!("{more} results have been arriving for {age} s ({mib} MiB are here)"),
        })
    }
}

impl ResultMemory {
    /// Creates memory of this many bytes, at least those of the largest result. A node's share is
    /// a quarter, but at least the largest result.
    pub(crate) fn new(bytes: u64) -> Arc<Self> {
        let all = (bytes >> 10).clamp(LEAST_KIB.into(), MOST_KIB.into()) as u32;
        Arc::new(Self {
            common: Arc::new(Semaphore::new((all - LARGEST_KIB) as usize)),
            last: Arc::new(Semaphore::new(1)),
            share_kib: (all / 4).max(LARGEST_KIB),
            nodes: Mutex::default(),
        })
    }

    /// Admits a result of a node, once its length fits into the node's share.
    pub(crate) async fn admit(
        self: &Arc<Self>,
        (node, name): (NodeId, &str),
        length: usize,
    ) -> Result<ResultPermit, AcquireError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let share = {
            let mut nodes = lock(&self.nodes);
            let holder = nodes.nodes.entry(node).or_insert_with(|| Holder {
                name: name.to_owned(),
                share: Arc::new(Semaphore::new(self.share_kib as usize)),
                results: BTreeMap::new(),
            });
            let standing = Standing { since: Instant::now(), held_kib: 0, has_arrived: false };
            holder.results.insert(number, standing);
            holder.share.clone()
        };
        let place = Place { memory: self.clone(), node, number };
        let share = share.acquire_many_owned(kib(length).min(self.share_kib)).await?;
        Ok(ResultPermit { place, _share: share, common: None, last: None })
    }

    /// Returns what each node has of the memory, by node.
    pub(crate) fn held(&self) -> Vec<Held> {
        let now = Instant::now();
        let nodes = lock(&self.nodes);
        let held = nodes.nodes.iter().map(|(node, holder)| {
            let arriving = holder.results.values().filter(|result| !result.has_arrived);
            Held {
                node: *node,
                name: holder.name.clone(),
                results: holder.results.len(),
                kib: holder.results.values().map(|result| u64::from(result.held_kib)).sum(),
                arriving: arriving.map(|result| now.duration_since(result.since)).max(),
            }
        });
        held.collect()
    }

    /// Logs who has the memory, if that was not done lately.
    fn warn_of_wait(&self) {
        let now = Instant::now();
        {
            let mut nodes = lock(&self.nodes);
            if nodes.warned.is_some_and(|at| now.duration_since(at) < WARN_PAUSE) {
                return;
            }
            nodes.warned = Some(now);
        }
        let held = self.held();
        let held: Vec<String> = held
            .iter()
            .map(|held| {
                let Held { name, results, kib, .. } = held;
                format!("`{name}` {} MiB in {results} results", kib.div_ceil(1 << 10))
            })
            .collect();
        tracing::warn!(
            held = held.join(", "),
            "results wait, because the memory for results is used up"
        );
    }
}

/// Place of a result among those of its node. Dropping it gives the place back.
#[derive(Debug)]
struct Place {
    memory: Arc<ResultMemory>,
    node: NodeId,
    number: u64,
}

impl Place {
    fn note(&self, change: impl FnOnce(&mut Standing)) {
        let mut nodes = lock(&self.memory.nodes);
        let holder = nodes.nodes.get_mut(&self.node);
        if let Some(standing) = holder.and_then(|holder| holder.results.get_mut(&self.number)) {
            change(standing);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut nodes = lock(&self.memory.nodes);
        let Some(holder) = nodes.nodes.get_mut(&self.node) else { return };
        holder.results.remove(&self.number);
        if holder.results.is_empty() {
            nodes.nodes.remove(&self.node);
        }
    }
}

/// Memory of one result. Dropping it gives the memory back.
#[derive(Debug)]
pub(crate) struct ResultPermit {
    place: Place,
    _share: OwnedSemaphorePermit,
    common: Option<OwnedSemaphorePermit>,
    last: Option<OwnedSemaphorePermit>,
}

impl ResultPermit {
    /// Takes memory for bytes that are about to arrive. Waits while there is none.
    pub(crate) async fn take(&mut self, bytes: usize) -> Result<(), AcquireError> {
        let kib = kib(bytes);
        if self.last.is_none() {
            let memory = self.place.memory.clone();
            match memory.common.clone().try_acquire_many_owned(kib) {
                Ok(permit) => self.add(permit),
                Err(_) => {
                    memory.warn_of_wait();
                    tokio::select! {
                        biased;
                        permit = memory.common.clone().acquire_many_owned(kib) => {
                            self.add(permit?)
                        }
                        permit = memory.last.clone().acquire_owned() => {
                            self.last = Some(permit?);
                            // What it has taken is covered by the memory that is set aside.
                            self.common = None;
                        }
                    }
                }
            }
        }
        self.place.note(|standing| standing.held_kib += kib);
        Ok(())
    }

    fn add(&mut self, permit: OwnedSemaphorePermit) {
        match &mut self.common {
            Some(common) => common.merge(permit),
            None => self.common = Some(permit),
        }
    }

    /// Whether it has the memory that was set aside, for which others wait.
    pub(crate) fn is_last(&self) -> bool {
        self.last.is_some()
    }

    /// Notes that all bytes have arrived.
    pub(crate) fn arrived(&self) {
        self.place.note(|standing| standing.has_arrived = true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    const MIB: usize = 1 << 20;

    fn node(number: u128) -> (NodeId, &'static str) {
        (NodeId(Uuid::from_u128(number)), "node")
    }

    async fn soon<T>(work: impl Future<Output = T>) -> Option<T> {
        tokio::time::timeout(Duration::from_millis(50), work).await.ok()
    }

    // promise: P8
    #[tokio::test]
    async fn announced_results_take_no_memory_of_others() {
        let memory = ResultMemory::new(256 << 20);
        let mut held = Vec::new();
        while let Some(permit) = soon(memory.admit(node(1), 34 * MIB)).await {
            held.push(permit.unwrap());
        }
        assert_eq!(held.len(), 2, "the share of a node is 68 MiB");
        for number in 2..=3 {
            let mut other = memory.admit(node(number), 68 * MIB).await.unwrap();
            soon(other.take(68 * MIB)).await.expect("there is memory").unwrap();
            drop(other);
        }
        assert_eq!(memory.held().iter().map(|held| (held.results, held.kib)).max(), Some((2, 0)));
        drop(held);
        assert_eq!(memory.held(), []);
        assert!(soon(memory.admit(node(1), 68 * MIB)).await.is_some());
    }

    // promise: P8
    #[tokio::test]
    async fn one_node_holds_a_quarter_of_the_memory() {
        let memory = ResultMemory::new(1024 << 20);
        let mut of_one = Vec::new();
        while let Some(permit) = soon(memory.admit(node(1), 32 * MIB)).await {
            let mut permit = permit.unwrap();
            soon(permit.take(32 * MIB)).await.expect("there is memory").unwrap();
            of_one.push(permit);
        }
        assert_eq!(of_one.len(), 8);
        assert!(soon(memory.admit(node(2), 68 * MIB)).await.is_some());
    }

    // promise: P8
    #[tokio::test]
    async fn results_that_fill_the_memory_end_one_by_one() {
        let memory = ResultMemory::new(80 << 20);
        let mut waiting = Vec::new();
        for number in 1..=6 {
            let mut permit = memory.admit(node(number), 60 * MIB).await.unwrap();
            soon(permit.take(2 * MIB)).await.expect("there is memory").unwrap();
            waiting.push(permit);
        }
        let ended = tokio::spawn(async move {
            let ends = waiting.into_iter().map(|mut permit| {
                tokio::spawn(async move {
                    for _ in 0..29 {
                        permit.take(2 * MIB).await.unwrap();
                        tokio::task::yield_now().await;
                    }
                })
            });
            for end in ends.collect::<Vec<_>>() {
                end.await.unwrap();
            }
        });
        let ended = tokio::time::timeout(Duration::from_secs(20), ended).await;
        ended.expect("no result waits for ever").unwrap();
    }

    #[test]
    fn slow_arrivals_are_told() {
        let held = |results, secs| Held {
            node: node(1).0,
            name: "node".into(),
            results,
            kib: 2048,
            arriving: Some(Duration::from_secs(secs)),
        };
        assert_eq!(held(8, 3).note(), None);
        let note = held(8, 43).note().unwrap();
        assert_eq!(note, "8 results have been arriving for 43 s (2 MiB are here)");
        assert!(held(1, 43).note().unwrap().starts_with("a result has been arriving"));
    }
}
