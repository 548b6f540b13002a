//! Finds a farm's coordinator among the places where it may be. Owns the order of the tries; opens
//! no socket.

use crate::endpoint::address::{Address, AddressError};
use crate::error::{ConnectError, chain};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::task::JoinSet;

/// Returns what the first place gives that is reached. Places are tried in turn: the next one when
/// one has failed, or has not answered for `patience`. Those before it are still waited for.
pub(crate) async fn first<T, F>(
    address: &Address,
    patience: Duration,
    reach: impl Fn(Address, SocketAddr) -> F,
) -> Result<T, ConnectError>
where
    T: Send + 'static,
    F: Future<Output = Result<T, ConnectError>> + Send + 'static,
{
    let mut failures = Vec::new();
    let mut candidates = VecDeque::new();
    for place in address.each() {
        match place.resolve().await {
            Ok(found) => candidates.extend(found.into_iter().map(|at| (place.clone(), at))),
            Err(error) => failures.push(ConnectError::from(error)),
        }
    }
    let mut tries = JoinSet::new();
    loop {
        if let Some((place, at)) = candidates.pop_front() {
            tries.spawn(reach(place, at));
        }
        let ended = tokio::select! {
            ended = tries.join_next() => ended,
            () = tokio::time::sleep(patience), if !candidates.is_empty() => continue,
        };
        match ended {
            Some(Ok(Ok(found))) => return Ok(found),
            Some(Ok(Err(error))) => failures.push(error),
            Some(Err(failed)) => {
                // Otherwise the runtime is stopping, and this task with it.
                if let Ok(panic) = failed.try_into_panic() {
                    std::panic::resume_unwind(panic);
                }
            }
            None => return Err(failure(address, failures)),
        }
    }
}

/// The most telling failure: one of a coordinator that answered, or what each place has said.
fn failure(address: &Address, mut failures: Vec<ConnectError>) -> ConnectError {
    let telling = failures.iter().position(|error| !is_absence(error));
    match (telling, failures.pop()) {
        (Some(index), last) => failures.into_iter().chain(last).nth(index),
        (None, last) if address.each().len() == 1 => last,
        (None, last) => {
            let each: Vec<String> = failures.iter().chain(&last).map(|one| chain(one)).collect();
            Some(ConnectError::Nowhere { each: each.join("; ") })
        }
    }
    .unwrap_or(ConnectError::Nowhere { each: format!("nothing was tried at {address}") })
}

/// Whether an error says that no coordinator was found at a place.
fn is_absence(error: &ConnectError) -> bool {
    matches!(
        error,
        ConnectError::Refused { .. }
            | ConnectError::Unreachable { .. }
            | ConnectError::NoRoute { .. }
            | ConnectError::Address(AddressError::Resolve { .. })
    )
}
