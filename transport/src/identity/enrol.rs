//! Enrolment: a token and a name become an identity. Has no list of tokens; the coordinator finds
//! the role of a secret in its ledger.

use crate::authority::certificate::public_key_info;
use crate::authority::token::{AuthorityPin, Grant, JoinToken};
use crate::authority::{Authority, AuthorityError};
use crate::close::CloseCode;
use crate::endpoint::address::Address;
use crate::endpoint::dial::connect_to_enrol;
use crate::error::ConnectError;
use crate::identity::Identity;
use crate::identity::peer::{PeerError, PeerIdentity, is_name};
use crate::identity::renew::shown;
use crate::stream::frame::{FrameError, open_both};
use crate::timing::Timing;
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use tessera_protocol::client::{EnrolReply, EnrolRequest};
use tessera_protocol::stream::StreamKind;
use tessera_protocol::{Hello, NodeId};

/// Why the enrolment failed.
#[derive(Debug, thiserror::Error)]
pub enum EnrolError {
    /// The coordinator was not reached, or is not the one of the token.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The exchange failed. The token may be used up by it.
    #[error("enrolment was interrupted")]
    Frame(#[from] FrameError),
    /// The coordinator refused.
    #[error("enrolment was refused: {0}")]
    Refused(String),
    /// A certificate cannot contain the name.
    #[error(transparent)]
    Name(PeerError),
    /// The received certificate is not for this key, name and farm.
    #[error("the coordinator sent a wrong certificate: {0}")]
    Wrong(&'static str),
    /// The key could not be made.
    #[error("cannot make a key")]
    Crypto(#[source] rcgen::Error),
}

/// A peer that wants to enrol.
#[derive(Clone, Copy, Debug)]
pub struct Applicant<'a> {
    /// The token to show.
    pub token: &'a JoinToken,
    /// Name: letters, digits and `.`, `_`, `-`, `@`.
    pub name: &'a str,
    /// Id of a node; None for a person.
    pub node: Option<NodeId>,
}

/// Gets an identity from the coordinator at `address`, whose authority must be the token's. The key
/// is made here and never sent. The identity is not stored: call [`Identity::save`] at once, since
/// the token is now used.
pub async fn enrol(
    address: &Address,
    applicant: Applicant<'_>,
    hello: &Hello,
    timing: Timing,
) -> Result<Identity, EnrolError> {
    if !is_name(applicant.name) {
        return Err(EnrolError::Name(PeerError::Name(
            crate::close::cut(applicant.name, 64).to_owned(),
        )));
    }
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(EnrolError::Crypto)?;
    let blank = CertificateParams::new(Vec::new()).map_err(EnrolError::Crypto)?;
    let certificate_request =
        blank.serialize_request(&key).map_err(EnrolError::Crypto)?.der().to_vec();
    let request = EnrolRequest {
        secret: applicant.token.secret.to_vec(),
        certificate_request,
        node: applicant.node,
        name: applicant.name.to_owned(),
    };
    let link = connect_to_enrol(address, applicant.token.authority, hello, timing).await?;
    let exchange = async {
        let (mut sender, mut receiver) = open_both(&link.connection, StreamKind::Enrol).await?;
        sender.send(&request).await?;
        sender.finish();
        receiver.expect(timing.answer).await
    };
    let reply = exchange.await;
    let shown = shown(&link.connection);
    link.close(CloseCode::Done, "enrolled").await;
    match reply? {
        EnrolReply::Refused(reason) => Err(EnrolError::Refused(reason)),
        EnrolReply::Certificate(chain) => {
            let mut identity = accept(chain, &key, applicant, &shown)?;
            identity.coordinator = Some(address.clone());
            Ok(identity)
        }
    }
}

/// Checks that the received chain is for this key and this farm before it is trusted.
fn accept(
    chain: Vec<Vec<u8>>,
    key: &KeyPair,
    applicant: Applicant<'_>,
    shown: &[CertificateDer<'static>],
) -> Result<Identity, EnrolError> {
    let chain: Vec<CertificateDer<'static>> = chain.into_iter().map(CertificateDer::from).collect();
    let [own, authority] = chain.as_slice() else {
        return Err(EnrolError::Wrong("its chain does not have two certificates"));
    };
    if public_key_info(own).as_deref() != Some(&key.subject_public_key_info()) {
        return Err(EnrolError::Wrong("it is of another key"));
    }
    let pin = public_key_info(authority).map(|info| AuthorityPin::of_public_key(&info));
    // After a rotation the token names the former authority. The server has shown in its handshake
    // that the former authority signed the new one.
    if pin != Some(applicant.token.authority) && !shown.iter().skip(1).any(|one| one == authority) {
        return Err(EnrolError::Wrong("it is of another authority"));
    }
    let identity = Identity::from_parts(PrivatePkcs8KeyDer::from(key.serialize_der()), chain)
        .map_err(|_| EnrolError::Wrong("it names no identity"))?;
    if identity.peer.name != applicant.name || identity.peer.node != applicant.node {
        return Err(EnrolError::Wrong("it names another identity"));
    }
    Ok(identity)
}

/// Returns the identity that this grant gives to the sender of a request.
pub fn grant_to(grant: &Grant, request: &EnrolRequest) -> Result<PeerIdentity, PeerError> {
    if let Some(name) = grant.name.as_ref().filter(|name| **name != request.name) {
        let claimed = crate::close::cut(&request.name, 64).to_owned();
        return Err(PeerError::OtherName { granted: name.clone(), claimed });
    }
    PeerIdentity::new(grant.role, &request.name, request.node)?.in_pool(grant.pool.as_deref())
}

/// Signs the certificate on the coordinator's side, after its ledger has found the grant for the
/// request's secret and the identity has its number and a serial number. Returns the answer with
/// the chain. The error's text is suitable for [`EnrolReply::Refused`]. The token should count as
/// used only if this succeeds.
pub fn sign(
    authority: &Authority,
    numbered: (&PeerIdentity, u64),
    request: &EnrolRequest,
) -> Result<EnrolReply, AuthorityError> {
    let chain = authority.sign_request(numbered, &request.certificate_request)?;
    let chain = chain.into_iter().map(|certificate| certificate.to_vec()).collect();
    Ok(EnrolReply::Certificate(chain))
}
