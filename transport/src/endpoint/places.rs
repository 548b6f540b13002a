//! Finds a farm's coordinator among the places where it may be. Owns the order of the tries; opens
//! no socket.

use crate::endpoint::address::{Address, AddressError};
use crate::error::{ConnectError, chain};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Returns what the first place gives that is reached. Places are tried in turn: the next one when
/// one has failed, or has not answered for `patience`. Those before it are still waited for. Where
/// nothing listens yet, another try follows every `patience` while others are waited for: a
/// coordinator that takes over begins to listen while the former one's place is silent.
pub(crate) async fn first<T, F>(
    address: &Address,
    patience: Duration,
    reach: impl Fn(Address, SocketAddr) -> F,
) -> Result<T, ConnectError>
where
    T: Send + 'static,
    F: Future<Output = Result<T, ConnectError>> + Send + 'static,
{
    let mut failures = Failures::default();
    let mut candidates = VecDeque::new();
    for place in address.each() {
        match place.resolve().await {
            Ok(found) => candidates.extend(found.into_iter().map(|at| (place.clone(), at))),
            Err(error) => failures.0.push((None, ConnectError::from(error))),
        }
    }
    let mut tries = JoinSet::new();
    let begin = |tries: &mut JoinSet<_>, (place, at): (Address, SocketAddr)| {
        let reached = reach(place.clone(), at);
        tries.spawn(async move { ((place, at), reached.await) });
    };
    candidates.pop_front().into_iter().for_each(|candidate| begin(&mut tries, candidate));
    let mut refused: VecDeque<(Instant, (Address, SocketAddr))> = VecDeque::new();
    loop {
        let again = refused.front().map(|(due, _)| *due);
        let ended = tokio::select! {
            ended = tries.join_next() => ended,
            () = tokio::time::sleep(patience), if !candidates.is_empty() => {
                candidates.pop_front().into_iter().for_each(|next| begin(&mut tries, next));
                continue;
            }
            () = tokio::time::sleep_until(again.unwrap_or_else(Instant::now)), if again.is_some()
                && !tries.is_empty() =>
            {
                let next = refused.pop_front().into_iter();
                next.for_each(|(_, next)| begin(&mut tries, next));
                continue;
            }
        };
        match ended {
            Some(Ok((_, Ok(found)))) => return Ok(found),
            Some(Ok((candidate, Err(error)))) => {
                let at = candidate.1;
                if matches!(error, ConnectError::Refused { .. }) {
                    refused.push_back((Instant::now() + patience, candidate));
                }
                failures.note(at, error);
                candidates.pop_front().into_iter().for_each(|next| begin(&mut tries, next));
            }
            Some(Err(failed)) => {
                // Otherwise the runtime is stopping, and this task with it.
                if let Ok(panic) = failed.try_into_panic() {
                    std::panic::resume_unwind(panic);
                }
            }
            None => break,
        }
    }
    Err(failure(address, failures.0.into_iter().map(|(_, error)| error).collect()))
}

/// The newest failure of each place.
#[derive(Default)]
struct Failures(Vec<(Option<SocketAddr>, ConnectError)>);

impl Failures {
    fn note(&mut self, at: SocketAddr, error: ConnectError) {
        match self.0.iter_mut().find(|(of, _)| *of == Some(at)) {
            Some((_, former)) => *former = error,
            None => self.0.push((Some(at), error)),
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

    const PATIENCE: Duration = Duration::from_millis(20);

    fn refused(address: Address) -> ConnectError {
        ConnectError::Refused { address }
    }

    #[tokio::test]
    async fn a_place_that_listens_later_is_found_beside_a_silent_one() {
        let address: Address = "127.0.0.1:1,127.0.0.1:2".parse().unwrap();
        let tries = Arc::new(AtomicU32::new(0));
        let found = first(&address, PATIENCE, |place, at| {
            let tries = tries.clone();
            async move {
                match at.port() {
                    1 => std::future::pending().await,
                    _ if tries.fetch_add(1, SeqCst) < 3 => Err(refused(place)),
                    port => Ok(port),
                }
            }
        });
        assert_eq!(found.await.unwrap(), 2);
        assert_eq!(tries.load(SeqCst), 4);
    }

    #[tokio::test]
    async fn places_where_nothing_listens_are_each_tried_once() {
        let address: Address = "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3".parse().unwrap();
        let tries = Arc::new(AtomicU32::new(0));
        let found = first(&address, PATIENCE, |place, _| {
            tries.fetch_add(1, SeqCst);
            async { Err::<(), _>(refused(place)) }
        });
        let error = found.await.unwrap_err().to_string();
        assert_eq!(error.matches("nothing listens").count(), 3, "{error}");
        assert_eq!(tries.load(SeqCst), 3);
    }
}
