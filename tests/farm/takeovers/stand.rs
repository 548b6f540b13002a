//! A farm for takeovers: its state on a PostgreSQL and its files in a bucket, three coordinators
//! with folders of their own, each behind a gate to the database and a proxy for nodes, and two
//! nodes.

use super::gate::Gate;
use crate::farm::fault_proxy::{Proxy, Weather};
use crate::farm::store::utf8;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use tessera_support::farm::{Farm, Process};
use tessera_support::ports;
use tessera_support::postgres::Postgres;
use tessera_support::seaweed::{KEY, SECRET, Seaweed};

/// A key for the farm's files.
const FARM_KEY: &str = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";
/// Term of a leader, in seconds.
pub(crate) const TERM_SECS: u64 = 2;
/// Coordinators, and nodes.
const PLACES: usize = 3;
pub(crate) const NODES: usize = 2;
/// Says of each unit where it goes, with the time.
const LOG: &str = "info,object_store=warn,tessera_coordinator::driver=debug";

/// A coordinator's place: all that stays when its process goes.
pub(crate) struct Place {
    log: String,
    data: PathBuf,
    listen: SocketAddr,
    pub(crate) gate: Gate,
    pub(crate) front: Proxy,
    pub(crate) process: Option<Process>,
    /// It is not started again now.
    pub(crate) rests: bool,
}

/// The leader's row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Leader {
    pub(crate) epoch: i64,
    /// Index of its place.
    pub(crate) place: usize,
    /// When its term ends, as the database writes it.
    pub(crate) until: String,
}

/// All of it.
pub(crate) struct Stand {
    pub(crate) farm: Farm,
    pub(crate) postgres: Postgres,
    bucket: Seaweed,
    pub(crate) places: Vec<Place>,
    nodes: Vec<u32>,
}

impl Stand {
    /// Starts it, where PostgreSQL and SeaweedFS are installed.
    pub(crate) fn start(what: &str) -> Option<Self> {
        let (postgres, bucket) = (Postgres::start(what)?, Seaweed::start(what)?);
        let farm = Farm::prepare();
        let places = (0..PLACES).map(|index| place(&farm, &postgres, index)).collect();
        let mut stand = Self { farm, postgres, bucket, places, nodes: Vec::new() };
        stand.revive(0);
        stand.farm.wait_for("the first to lead", |farm| {
            farm.command(&["jobs"]).output().is_ok_and(|output| output.status.success())
        });
        let fronts: Vec<_> = stand.places.iter().map(|place| place.front.address()).collect();
        for index in 0..NODES {
            let environment = vec![
                ("TESSERA_DEVICE".into(), "cpu".into()),
                ("TESSERA_COORDINATOR".into(), fronts.join(",").into()),
            ];
            let name = format!("node-{index}");
            stand.farm.add_node_with(&name, &["--threads", "1"], environment);
            stand.nodes.push(stand.farm.node_process(index));
        }
        (1..PLACES).for_each(|index| stand.revive(index));
        Some(stand)
    }

    /// Starts a coordinator that stands by, if its process has ended.
    pub(crate) fn revive(&mut self, index: usize) {
        let place = &mut self.places[index];
        if place.rests || place.process.as_mut().is_some_and(Process::is_running) {
            return;
        }
        let command = self.coordinator(index);
        let process = self.farm.spawn(command, &self.places[index].log);
        self.places[index].process = Some(process);
    }

    pub(crate) fn revive_all(&mut self) {
        (0..PLACES).for_each(|index| self.revive(index));
    }

    fn coordinator(&self, index: usize) -> Command {
        let place = &self.places[index];
        let listen = place.listen.to_string();
        let store = self.postgres.address_at(place.gate.port);
        let store = format!("{store}?term={TERM_SECS}");
        let blobs = self.bucket.address("farm");
        let data = utf8(&place.data);
        let mut command =
            self.farm.command(&["coordinator", "--data", data, "--listen", &listen, "--stand-by"]);
        command.args(["--store", &store, "--blobs", &blobs, "--check-first", "0"]);
        secrets(&mut command);
        command.env("TESSERA_LOG", LOG);
        command
    }

    /// All coordinators' addresses, as clients name them: past the proxies.
    pub(crate) fn addresses(&self) -> String {
        let all: Vec<_> = self.places.iter().map(|place| place.listen.to_string()).collect();
        all.join(",")
    }

    /// Who leads, or led last. None while that is no process that runs.
    pub(crate) fn leader(&self) -> Option<Leader> {
        let row = self.postgres.sql("SELECT epoch, owner, expires_at FROM tessera.leader");
        let mut columns = row.split('|');
        let epoch = columns.next()?.parse().ok()?;
        let process: u32 = columns.next()?.rsplit(' ').next()?.parse().ok()?;
        let is_its = |place: &Place| place.process.as_ref().is_some_and(|it| it.id() == process);
        let place = self.places.iter().position(is_its)?;
        Some(Leader { epoch, place, until: columns.next()?.to_owned() })
    }

    /// The leader; waited for, with all coordinators running.
    pub(crate) fn wait_for_leader(&mut self, after: i64) -> Leader {
        let mut found = None;
        for _ in 0..2400 {
            self.revive_all();
            found = self.leader().filter(|leader| leader.epoch > after);
            if found.is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        found.unwrap_or_else(|| panic!("nobody leads after epoch {after}\n{}", self.logs()))
    }

    /// Number of records.
    pub(crate) fn head(&self) -> i64 {
        self.postgres.sql("SELECT head FROM tessera.leader").parse().expect("a number")
    }

    /// Waits until so many more records are there.
    pub(crate) fn wait_for_records(&mut self, more: i64) {
        let before = self.head();
        for _ in 0..2400 {
            if self.head() >= before + more {
                return;
            }
            self.revive_all();
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("no work is done\n{}", self.logs());
    }

    /// What a coordinator has said.
    pub(crate) fn said(&self, place: usize) -> String {
        let path = self.farm.folder().join(format!("{}.log", self.places[place].log));
        std::fs::read_to_string(path).unwrap_or_default()
    }

    /// The ends of what all have said.
    pub(crate) fn logs(&self) -> String {
        let mut all = self.farm.logs();
        for index in 0..PLACES {
            let said = self.said(index);
            let told: Vec<_> = said.lines().filter(|line| !line.contains("DEBUG")).collect();
            let from = told.len().saturating_sub(15);
            all += &format!("--- coordinator {index}\n{}\n", told[from..].join("\n"));
        }
        all
    }

    /// Nodes have run all the time, and have given every result away.
    pub(crate) fn nodes_lost_nothing(&self) {
        for (index, process) in self.nodes.iter().enumerate() {
            assert_eq!(self.farm.node_process(index), *process);
            let log = self.farm.folder().join(format!("node-{index}.log"));
            let said = std::fs::read_to_string(log).unwrap_or_default();
            for bad in ["result was lost", "unusable result", "panicked"] {
                assert!(!said.contains(bad), "node {index}: {bad}\n{said}");
            }
            let outbox = self.farm.folder().join(format!("node-{index}/outbox"));
            self.farm.wait_for("an empty outbox", |_| {
                std::fs::read_dir(&outbox).is_ok_and(|files| files.count() == 0)
            });
        }
    }

    /// Ends all coordinators, and checks what they have left.
    pub(crate) fn end(&mut self) {
        let leader = self.wait_for_leader(0);
        // Those that stand by end first, so that none of them takes over.
        let mut order: Vec<usize> = (0..PLACES).filter(|index| *index != leader.place).collect();
        order.push(leader.place);
        for index in order {
            let ended = self.places[index].process.take().is_some_and(|mut it| it.terminate());
            assert!(ended || index != leader.place, "{}", self.logs());
        }
        let data = &self.places[leader.place].data;
        let (store, blobs) = (self.postgres.address(), self.bucket.address("farm"));
        let mut fsck = self.farm.command(&["fsck", "--json", "--data", utf8(data)]);
        secrets(fsck.args(["--store", &store, "--blobs", &blobs]));
        let output = fsck.output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let report: serde_json::Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {said}"));
        assert_eq!((&report["clean"], &report["units_committed_twice"]), (&true.into(), &0.into()));
    }
}

fn place(farm: &Farm, postgres: &Postgres, index: usize) -> Place {
    // The first has what commands of the farm use.
    let (log, data, listen) = match index {
        0 => ("coordinator".to_owned(), farm.data(), farm.address().parse().expect("an address")),
        _ => {
            let name = format!("coordinator-{index}");
            (name.clone(), farm.folder().join(name), ports::udp(Ipv4Addr::LOCALHOST.into()))
        }
    };
    let front = Proxy::start(listen, Weather::fair(), 7);
    let gate = Gate::before(postgres.port());
    Place { log, data, listen, gate, front, process: None, rests: false }
}

fn secrets(command: &mut Command) {
    command.env("AWS_ACCESS_KEY_ID", KEY).env("AWS_SECRET_ACCESS_KEY", SECRET);
    command.env("TESSERA_FARM_KEY", FARM_KEY);
}
