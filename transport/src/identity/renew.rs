//! Renews certificates over an open connection, at half of a certificate's life, for the identity
//! of the connection. Keys are made where they are used. The coordinator checks before it answers
//! that a peer is not denied.

use crate::authority::Authority;
use crate::authority::certificate::public_key_info;
use crate::authority::validity::{Validity, now_secs};
use crate::close::cut;
use crate::endpoint::link::Credential;
use crate::identity::{Identity, IdentityError};
use crate::stream::frame::{FrameError, open_both};
use crate::timing::Timing;
use quinn::Connection;
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tessera_protocol::renewal::{RenewReply, RenewRequest};
use tessera_protocol::stream::StreamKind;

/// Longest wait between two questions. Within it, a peer has a certificate from the farm's newest
/// authority.
const ASK_WITHIN: Duration = Duration::from_secs(600);
/// Shortest wait between two questions.
const ASK_PAUSE: Duration = Duration::from_millis(500);

/// Wait for another process that renews the same identity.
const TURN_PAUSE: Duration = Duration::from_secs(2);
/// File of the lock.
const LOCK_FILE: &str = "renewing.lock";

/// Why there is no new certificate. The old one stays valid.
#[derive(Debug, thiserror::Error)]
pub enum RenewError {
    /// The stream failed.
    #[error("the renewal of the certificate was interrupted")]
    Frame(#[from] FrameError),
    /// The coordinator refused.
    #[error("the certificate is not renewed: {0}")]
    Refused(String),
    /// The received certificate is not for this key, identity and farm.
    #[error("the coordinator sent a wrong certificate: {0}")]
    Wrong(&'static str),
    /// The new identity cannot be stored.
    #[error(transparent)]
    Keep(#[from] IdentityError),
    /// The key could not be made.
    #[error("cannot make a key")]
    Crypto(#[source] rcgen::Error),
}

/// The answer to a request for renewal.
#[derive(Debug)]
pub enum Renewal {
    /// The new identity, not stored yet.
    Renewed(Identity),
    /// The certificate in use is not old enough; ask again after this time.
    NotYet(Duration),
}

/// Asks for the next certificate. The key is made on this side and never sent.
pub async fn ask(
    connection: &Connection,
    identity: &Identity,
    timing: Timing,
) -> Result<Renewal, RenewError> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(RenewError::Crypto)?;
    let blank = CertificateParams::new(Vec::new()).map_err(RenewError::Crypto)?;
    let certificate_request =
        blank.serialize_request(&key).map_err(RenewError::Crypto)?.der().to_vec();
    let (mut sender, mut receiver) = open_both(connection, StreamKind::Renew).await?;
    sender.send(&RenewRequest { certificate_request }).await?;
    sender.finish();
    match receiver.expect(timing.answer).await? {
        RenewReply::Refused(reason) => Err(RenewError::Refused(reason)),
        RenewReply::NotYet { ask_again_secs } => Ok(Renewal::NotYet(
            Duration::from_secs(ask_again_secs.into()).clamp(ASK_PAUSE, ASK_WITHIN),
        )),
        RenewReply::Certificate(chain) => accept(chain, &key, identity).map(Renewal::Renewed),
    }
}

/// Checks that the certificate is for this key and this identity. The authority may be new. The
/// connection belongs to the coordinator, as the authority that this side trusts has certified, so
/// the coordinator can say who signs from now on.
fn accept(chain: Vec<Vec<u8>>, key: &KeyPair, former: &Identity) -> Result<Identity, RenewError> {
    let chain: Vec<CertificateDer<'static>> = chain.into_iter().map(CertificateDer::from).collect();
    let [own, _authority] = chain.as_slice() else {
        return Err(RenewError::Wrong("its chain does not have two certificates"));
    };
    if public_key_info(own).as_deref() != Some(&key.subject_public_key_info()) {
        return Err(RenewError::Wrong("it is for another key"));
    }
    let mut identity = Identity::from_parts(PrivatePkcs8KeyDer::from(key.serialize_der()), chain)
        .map_err(|_| RenewError::Wrong("it names no identity"))?;
    if (&identity.peer.name, identity.peer.node) != (&former.peer.name, former.peer.node) {
        return Err(RenewError::Wrong("it names another identity"));
    }
    identity.coordinator.clone_from(&former.coordinator);
    Ok(identity)
}

/// Returns the chain that the other end presented: its own certificate, then its authority's newest
/// one.
pub(crate) fn shown(connection: &Connection) -> Vec<CertificateDer<'static>> {
    let shown = connection
        .peer_identity()
        .and_then(|any| any.downcast::<Vec<CertificateDer<'static>>>().ok());
    shown.map_or_else(Vec::new, |chain| *chain)
}

/// Returns whether the certificate should be renewed before anything else: it is time by this
/// machine's clock, or the server has another authority now.
pub fn is_due(connection: &Connection, identity: &Identity) -> bool {
    let due = identity.validity().is_none_or(|validity| validity.is_due(now_secs()));
    due || shown(connection).get(1) != Some(identity.authority())
}

/// Renews the identity of a folder if it is time, and replaces it there as a whole. One process
/// renews at a time; if another one has done it since, its identity is returned.
pub async fn renew_kept(
    connection: &Connection,
    identity: &Identity,
    folder: &Path,
    timing: Timing,
) -> Result<Renewal, RenewError> {
    let Some(_alone) = Turn::take(folder) else { return Ok(Renewal::NotYet(TURN_PAUSE)) };
    if let Some(newer) = Identity::load(folder).ok().filter(|there| there.succeeds(identity)) {
        return Ok(Renewal::Renewed(newer));
    }
    let renewal = ask(connection, identity, timing).await?;
    if let Renewal::Renewed(renewed) = &renewal {
        renewed.save(folder)?;
    }
    Ok(renewal)
}

/// The right to renew the identity of a folder. Two processes that renew at the same time could
/// leave the older of the two new identities in the folder. Ends when dropped.
struct Turn(#[expect(dead_code, reason = "an open file holds the lock")] Option<File>);

impl Turn {
    /// Takes the right; None while another process has it. Where locks do not exist, the order of
    /// the writers decides.
    fn take(folder: &Path) -> Option<Self> {
        let Ok(file) = File::create(folder.join(LOCK_FILE)) else { return Some(Self(None)) };
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => None,
            Ok(()) | Err(TryLockError::Error(_)) => Some(Self(Some(file))),
        }
    }
}

/// Renews the identity of a folder as long as the connection exists. `renewed` gets each new one.
/// `failed` gets every error, and then the renewal is tried again.
pub async fn keep_fresh(
    connection: Connection,
    mut identity: Arc<Identity>,
    folder: &Path,
    timing: Timing,
    told: impl Fn(Result<Arc<Identity>, RenewError>),
) {
    loop {
        let wait = match renew_kept(&connection, &identity, folder, timing).await {
            Ok(Renewal::NotYet(wait)) => wait,
            Ok(Renewal::Renewed(renewed)) => {
                identity = Arc::new(renewed);
                told(Ok(identity.clone()));
                pause(&identity)
            }
            Err(error) => {
                told(Err(error));
                pause(&identity)
            }
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            _ = connection.closed() => return,
        }
    }
}

/// Returns a quarter of the certificate's life, so that several tries fit into its second half.
fn pause(identity: &Identity) -> Duration {
    let life = identity.validity().map_or(0, |validity| validity.life_secs());
    Duration::from_secs(life / 4).clamp(ASK_PAUSE, ASK_WITHIN)
}

/// Returns the answer for a certificate that is not old enough to be renewed; None if it is.
pub fn early(authority: &Authority, credential: &Credential, now_secs: u64) -> Option<RenewReply> {
    let Credential { peer, validity, authority: of, .. } = credential;
    let life = authority.lifetimes().life(peer.role).as_secs();
    let current = *of == Some(authority.pin()) && validity.life_secs() <= life + 1;
    if !current || validity.is_due(now_secs) {
        return None;
    }
    let half = (validity.issued_at + validity.life_secs() / 2).saturating_sub(now_secs);
    Some(RenewReply::NotYet { ask_again_secs: half.try_into().unwrap_or(u32::MAX) })
}

/// Signs the next certificate on the coordinator's side, after a check that the peer may have it.
/// Returns the answer and the validity. The error's text is suitable for [`RenewReply::Refused`].
pub fn sign(
    authority: &Authority,
    numbered: (&crate::PeerIdentity, u64),
    request: &RenewRequest,
) -> Result<(RenewReply, Validity), String> {
    let signed = authority.sign_request(numbered, &request.certificate_request);
    let cut = |text: String| cut(&text, tessera_protocol::limits::REASON_MAX).to_owned();
    let chain = signed.map_err(|error| cut(error.to_string()))?;
    let validity = chain.first().and_then(Validity::of_certificate);
    let validity = validity.ok_or_else(|| "the new certificate cannot be read".to_owned())?;
    let chain = chain.into_iter().map(|certificate| certificate.to_vec()).collect();
    Ok((RenewReply::Certificate(chain), validity))
}
