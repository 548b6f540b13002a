//! Places, changes and states for the tests of this program.

use std::sync::Arc;
use tessera_coordinator::folder::DataFolder;
use tessera_coordinator::spool::{SpoolExtent, SpoolKey};
use tessera_coordinator::store::{
    Changes, Loaded, Purpose, Sequence, Store, StoreError, StorePlace,
};
use tessera_protocol::client::Role;
use tessera_protocol::{FrameNumber, JobId};
use tessera_store_postgres::{PostgresPlace, StoreAddress};
use tessera_support::postgres::Postgres;
use tessera_transport::member::MemberRecord;
use tessera_transport::{PeerIdentity, TokenRecord, TokenUse};

/// A data folder of a store.
pub(crate) struct Farm {
    pub(crate) root: tempfile::TempDir,
    pub(crate) place: Arc<dyn StorePlace>,
}

/// A place on a database, with a term of two seconds.
pub(crate) fn place_at(address: &str, owner: &str) -> PostgresPlace {
    let separator = if address.contains('?') { '&' } else { '?' };
    let address = StoreAddress::parse(&format!("{address}{separator}term=2")).unwrap();
    PostgresPlace::new(address, owner.into(), true)
}

impl Farm {
    pub(crate) fn new(place: impl StorePlace + 'static) -> Self {
        Self { root: tempfile::tempdir().unwrap(), place: Arc::new(place) }
    }

    pub(crate) fn on(postgres: &Postgres) -> Self {
        Self::new(place_at(&postgres.address(), "one"))
    }

    /// Opens the store, after whoever led it has let it go.
    pub(crate) fn open(&self) -> Box<dyn Store> {
        self.try_open().unwrap()
    }

    pub(crate) fn try_open(&self) -> Result<Box<dyn Store>, StoreError> {
        let folder = DataFolder::open(self.root.path()).unwrap();
        self.place.open(&folder, Purpose::Run)
    }

    pub(crate) fn load(&self) -> Result<Loaded, StoreError> {
        let mut store = self.try_open()?;
        let loaded = store.load();
        store.close().unwrap();
        loaded
    }

    pub(crate) fn commit(&self, changes: &Changes) {
        let mut store = self.open();
        store.commit(changes).unwrap();
        store.close().unwrap();
    }
}

pub(crate) fn record(number: u64) -> (Sequence, Vec<u8>) {
    (number, format!("record {number}").repeat(number as usize % 7 + 1).into_bytes())
}

pub(crate) fn records(numbers: impl IntoIterator<Item = u64>) -> Changes {
    Changes { records: numbers.into_iter().map(record).collect(), ..Changes::default() }
}

pub(crate) fn spool(frame: u32) -> SpoolKey {
    SpoolKey { job: JobId(uuid::Uuid::from_u128(7)), frame: FrameNumber(frame) }
}

pub(crate) fn token(number: u8) -> TokenRecord {
    TokenRecord {
        name: None,
        replace: false,
        hash: [number; 32],
        role: Role::Node,
        uses_left: 3,
        expires_at: 99,
        pool: Some("gpu".into()),
        uses: 4,
        made_by: "admin ada".into(),
        purpose: TokenUse::Api(3),
    }
}

pub(crate) fn member(number: u64) -> MemberRecord {
    MemberRecord::new(number, &PeerIdentity::new(Role::Artist, "ada", None).unwrap(), 9)
}

/// Something of every kind.
pub(crate) fn everything() -> Changes {
    let mut changes = records(1..=300);
    changes.records[7].1 = vec![7; 100_000];
    changes.spools = [1, 2].map(|frame| (spool(frame), Some(SpoolExtent::open(56)))).into();
    changes.members = [3, 4].map(|number| (number, Some(member(number)))).into();
    changes.tokens = [1, 2].map(|number| ([number; 32], Some(token(number)))).into();
    changes.audit_head = Some(b"head".to_vec());
    changes
}
