//! Whether this coordinator leads, and who does otherwise, for transports that pass requests on.

use super::answer::Api;
use crate::standing::Standing;
use rustls::pki_types::CertificateDer;

impl Api {
    /// Returns who leads, where another coordinator does; None for the one that leads.
    pub fn standing(&self) -> Option<Standing> {
        self.context.standing.as_ref().map(|standing| standing.borrow().clone())
    }

    /// Whether this coordinator stood by and does no more: another handle has its requests, or will
    /// soon.
    pub fn has_stood_by(&self) -> bool {
        self.context.standing.as_ref().is_some_and(|standing| standing.has_changed().is_err())
    }

    /// Returns the certificate of the farm's authority, which signs those of pages (`farm`).
    pub fn authority_certificate(&self) -> CertificateDer<'static> {
        self.context.access.authority().certificate().clone().into_owned()
    }

    /// Returns the secret of the term in which this coordinator leads, which only the farm's
    /// coordinators know; None where nobody stands by.
    pub fn term_key(&self) -> Option<&[u8]> {
        Some(self.context.term_key.as_slice()).filter(|key| !key.is_empty())
    }
}
