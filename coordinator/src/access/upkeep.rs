//! Regular upkeep of certificates: closes connections whose certificates have expired, renews the
//! coordinator's certificate, and renews the administrator's identity in the data folder. How long
//! certificates are valid is decided by [`Lifetimes`](tessera_transport::Lifetimes).

use super::Access;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tessera_protocol::client::Role;
use tessera_transport::identity::IdentityError;
use tessera_transport::member::{ADMIN_NAME, ADMIN_NUMBER};
use tessera_transport::validity::now_secs;
use tessera_transport::{Authority, AuthorityError, Identity, PeerIdentity};

/// Time between two checks. An expired certificate is found within it.
const PERIOD: Duration = Duration::from_secs(1);
/// Time between two renewals of the coordinator's own certificate.
const SERVER_PERIOD: Duration = Duration::from_secs(86_400);

/// Identities that the coordinator renews itself, because it has the authority's key.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// Folder of the admin's identity.
    pub(crate) admin: PathBuf,
    /// Folder of the local user's identity, if the local user has a home.
    pub(crate) user: Option<PathBuf>,
    /// Address at which clients on this machine reach the coordinator.
    pub(crate) address: SocketAddr,
}

/// Why the admin identity cannot be renewed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeptError {
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    #[error(transparent)]
    Identity(#[from] IdentityError),
}

impl Kept {
    /// Makes or renews the admin's identity if it is time. Copies it to the local user's folder, if
    /// that has no identity or an older one of this admin.
    pub(crate) fn refresh(&self, authority: &Authority) -> Result<Identity, KeptError> {
        let there = match Identity::is_at(&self.admin).then(|| Identity::load(&self.admin)) {
            // The authority's key is here, so a damaged identity of the admin can be made again.
            Some(Err(IdentityError::Broken { problem, .. })) => {
                tracing::warn!(problem, "the admin identity is damaged, and is made again");
                None
            }
            there => there.transpose()?,
        };
        let address = self.address.into();
        let fresh = |identity: &Identity| {
            identity.coordinator.as_ref() == Some(&address) && !is_due(identity, authority)
        };
        let identity = match there.filter(fresh) {
            Some(identity) => identity,
            None => self.renew(authority)?,
        };
        if let Some(place) = &self.user {
            self.leave(&identity, place, authority);
        }
        Ok(identity)
    }

    fn renew(&self, authority: &Authority) -> Result<Identity, KeptError> {
        let peer = PeerIdentity {
            role: Role::Admin,
            name: ADMIN_NAME.to_owned(),
            node: None,
            pool: None,
            number: ADMIN_NUMBER,
        };
        let mut identity = authority.issue_as(&peer, now_secs())?;
        identity.coordinator = Some(self.address.into());
        identity.save(&self.admin)?;
        Ok(identity)
    }

    /// Copies the identity to the local user's folder. A failure is only logged: a user without a
    /// writable home still has a coordinator and the identity in the data folder.
    fn leave(&self, identity: &Identity, place: &Path, authority: &Authority) {
        if Identity::is_at(place) {
            let Ok(there) = Identity::load(place) else { return };
            let ours =
                there.peer == identity.peer && there.authority_pin() == Some(authority.pin());
            if !ours || !is_due(&there, authority) {
                return;
            }
        }
        match identity.save(place) {
            Ok(()) => {
                tracing::info!(place = %place.display(), "admin identity left for the local user")
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "no admin identity could be left for the local user");
            }
        }
    }
}

/// Returns whether an identity is from another authority, or past half of its life.
fn is_due(identity: &Identity, authority: &Authority) -> bool {
    identity.authority() != authority.certificate()
        || identity.validity().is_none_or(|validity| validity.is_due(now_secs()))
}

/// Ends the trust in a former authority once its time is over.
async fn end_overlap(access: &Arc<Access>) {
    if access.authority().former_until().is_none_or(|until| until > now_secs()) {
        return;
    }
    let ending = access.clone();
    let ended = tokio::task::spawn_blocking(move || ending.end_overlap()).await;
    let reason = match ended {
        Ok(Ok(Some(authority))) => match access.tell_doors(&authority) {
            Ok(()) => {
                tracing::info!("the former authority has ended");
                let about = String::new();
                match access.tell("the coordinator".into(), "former authority ended", about).await {
                    Ok(()) => return,
                    Err(error) => error.to_string(),
                }
            }
            Err(error) => error.to_string(),
        },
        Ok(Ok(None)) => return,
        Ok(Err(error)) => error.to_string(),
        Err(error) => error.to_string(),
    };
    tracing::error!(reason, "the end of the former authority is not complete");
}

/// Runs the upkeep as long as the coordinator runs.
pub(crate) async fn keep(access: Arc<Access>, kept: Kept) {
    let mut server_made = Instant::now();
    let mut warned = false;
    loop {
        tokio::time::sleep(PERIOD).await;
        access.sweep(now_secs());
        end_overlap(&access).await;
        let authority = access.authority();
        let (kept, renewing) = (kept.clone(), authority.clone());
        let refreshed =
            tokio::task::spawn_blocking(move || kept.refresh(&renewing).map(drop)).await;
        match refreshed {
            Ok(Err(error)) if !warned => {
                let error = &error as &dyn std::error::Error;
                tracing::error!(error, "the admin identity in the data folder cannot be renewed");
                warned = true;
            }
            Ok(Err(_)) | Err(_) => {}
            Ok(Ok(())) => warned = false,
        }
        if server_made.elapsed() >= SERVER_PERIOD {
            if let Err(error) = access.tell_doors(&authority) {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "the coordinator's certificate is not renewed"
                );
            }
            server_made = Instant::now();
        }
    }
}
