//! How many connections each address has, so that one machine leaves room for others.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Connections by address.
#[derive(Debug)]
pub(crate) struct Crowd {
    most: usize,
    here: Mutex<HashMap<IpAddr, usize>>,
}

/// A connection that is counted.
#[derive(Debug)]
pub(crate) struct Place {
    crowd: Arc<Crowd>,
    address: IpAddr,
}

impl Crowd {
    /// Nobody yet. `most`: connections of one address.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, here: Mutex::default() })
    }

    /// Counts one more until the returned value is dropped; None if the address has too many. This
    /// machine itself has no limit: a proxy speaks for everybody.
    pub(crate) fn enter(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let mut here = self.here.lock().unwrap_or_else(PoisonError::into_inner);
        let count = here.entry(address).or_default();
        if *count >= self.most && !address.is_loopback() {
            return None;
        }
        *count += 1;
        Some(Place { crowd: self.clone(), address })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut here = self.crowd.here.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = here.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                here.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_some_connections_and_leaves_room() {
        let crowd = Crowd::new(2);
        let [near, far, local] =
            ["192.0.2.1", "2001:db8::1", "::1"].map(|text| text.parse::<IpAddr>().expect("an IP"));
        let held: Vec<_> = (0..5).filter_map(|_| crowd.enter(near)).collect();
        assert_eq!(held.len(), 2);
        assert!(crowd.enter(far).is_some());
        assert_eq!((0..5).filter_map(|_| crowd.enter(local)).count(), 5);
        drop(held);
        assert!(crowd.here.lock().expect("no panic").is_empty());
    }
}
