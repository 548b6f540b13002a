//! Renews certificates over an open connection: at half of a certificate's life, for the identity
//! of the connection. Keys are made where they are used. Decides nothing about who is denied; the
//! coordinator does, before it answers.

use crate::authority::{Authority, public_key_info};
use crate::close::cut;
use crate::frame::{FrameError, open_both};
use crate::identity::{Identity, IdentityError};
use crate::link::Credential;
use crate::timing::Timing;
use crate::validity::{Validity, now_secs};
use quinn::Connection;
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tessera_protocol::renewal::{RenewReply, RenewRequest};
use tessera_protocol::stream::StreamKind;

/// Longest wait between two questions: within it, a peer has a certificate of the farm's newest
/// authority.
const ASK_WITHIN: Duration = Duration::from_secs(600);
/// Shortest wait between two questions.
const ASK_PAUSE: Duration = Duration::from_millis(500);

/// Why there is no new certificate. The old one is as good as it was.
#[derive(Debug, thiserror::Error)]
pub enum RenewError {
    /// The stream failed.
    #[error("the renewal of the certificate was interrupted")]
    Frame(#[from] FrameError),
    /// The coordinator says no.
    #[error("the certificate is not renewed: {0}")]
    Refused(String),
    /// What came is not for this key, identity and farm.
    #[error("the coordinator sent a wrong certificate: {0}")]
    Wrong(&'static str),
    /// It came and cannot be kept.
    #[error(transparent)]
    Keep(#[from] IdentityError),
    /// No key could be made.
    #[error("cannot make a key")]
    Crypto(#[source] rcgen::Error),
}

/// The answer to a request for renewal.
#[derive(Debug)]
pub enum Renewal {
    /// The new identity, not stored yet.
    Renewed(Identity),
    /// The certificate in use is fresh enough; ask again after this time.
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

/// Checks that the certificate is for this key and this identity. The authority may be a new one:
/// the connection is the coordinator's, by the word of the authority that this side trusts, and
/// says who signs from now on.
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

/// The chain by which the other end made itself known: its own certificate, and then its
/// authority's newest.
pub(crate) fn shown(connection: &Connection) -> Vec<CertificateDer<'static>> {
    let shown = connection
        .peer_identity()
        .and_then(|any| any.downcast::<Vec<CertificateDer<'static>>>().ok());
    shown.map_or_else(Vec::new, |chain| *chain)
}

/// Is it time to ask before anything else: by this machine's clock, or because the server has
/// another authority now?
pub fn is_due(connection: &Connection, identity: &Identity) -> bool {
    let due = identity.validity().is_none_or(|validity| validity.is_due(now_secs()));
    due || shown(connection).get(1) != Some(identity.authority())
}

/// Renews an identity that is kept in a folder, if it is time: it is replaced there as a whole.
pub async fn renew_kept(
    connection: &Connection,
    identity: &Identity,
    folder: &Path,
    timing: Timing,
) -> Result<Renewal, RenewError> {
    let renewal = ask(connection, identity, timing).await?;
    if let Renewal::Renewed(renewed) = &renewal {
        renewed.save(folder)?;
    }
    Ok(renewal)
}

/// Keeps the identity in a folder fresh for as long as the connection stands; each new one is also
/// given to `renewed`. What goes wrong is given to `failed`, and tried again.
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

/// A quarter of a life, so that several tries fit into its second half.
fn pause(identity: &Identity) -> Duration {
    let life = identity.validity().map_or(0, |validity| validity.life_secs());
    Duration::from_secs(life / 4).clamp(ASK_PAUSE, ASK_WITHIN)
}

/// The coordinator's side, once it has found that the peer is not denied: the answer, and the new
/// certificate's validity where there is one.
pub fn answer(
    authority: &Authority,
    credential: &Credential,
    request: &RenewRequest,
    now_secs: u64,
) -> (RenewReply, Option<Validity>) {
    let Credential { peer, validity, authority: of } = credential;
    let life = authority.lifetimes().life(peer.role).as_secs();
    let current = *of == Some(authority.pin()) && validity.life_secs() <= life + 1;
    if current && !validity.is_due(now_secs) {
        let half = (validity.issued_at + validity.life_secs() / 2).saturating_sub(now_secs);
        return (RenewReply::NotYet { ask_again_secs: half.try_into().unwrap_or(u32::MAX) }, None);
    }
    match authority.sign_request(peer, &request.certificate_request) {
        Ok(chain) => {
            let validity = chain.first().and_then(Validity::of_certificate);
            let chain = chain.into_iter().map(|certificate| certificate.to_vec()).collect();
            (RenewReply::Certificate(chain), validity)
        }
        Err(error) => {
            let reason = cut(&error.to_string(), tessera_protocol::limits::REASON_MAX).to_owned();
            (RenewReply::Refused(reason), None)
        }
    }
}
