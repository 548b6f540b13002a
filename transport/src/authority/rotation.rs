//! Rotation of the authority. While both are trusted, servers present the new one, cross-signed by
//! the old one, and accept certificates of either. The old key is deleted at the rotation.

use crate::authority::Authority;
use crate::authority::certificate::{
    AUTHORITY_NAME, AUTHORITY_VALIDITY, as_authority, parameters, pem_text,
};
use crate::authority::error::AuthorityError;
use crate::authority::former::{FORMER_FILE, Former, ROTATION_FILE, complete, remove, write};
use crate::files::Access;
use rcgen::{Issuer, KeyPair, PKCS_ECDSA_P256_SHA256};
use std::path::Path;
use std::time::Duration;

impl Authority {
    /// Returns until when a former authority is trusted, in seconds since the Unix epoch.
    pub fn former_until(&self) -> Option<u64> {
        self.former.as_ref().map(|former| former.until)
    }

    /// Makes a new authority in the same folder, and trusts this one beside it for the time
    /// `overlap`. The change is durable on return, and the old key is deleted. Refused during
    /// another rotation.
    pub fn rotate(
        &self,
        folder: &Path,
        now_secs: u64,
        overlap: Duration,
    ) -> Result<Self, AuthorityError> {
        if let Some(until) = self.former_until().filter(|until| *until > now_secs) {
            return Err(AuthorityError::Rotating(until - now_secs));
        }
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(AuthorityError::Crypto)?;
        let params = as_authority(parameters(AUTHORITY_NAME, AUTHORITY_VALIDITY)?);
        let cross =
            params.signed_by(&key, &self.issuer).map_err(AuthorityError::Crypto)?.der().clone();
        let certificate = params.self_signed(&key).map_err(AuthorityError::Crypto)?.der().clone();
        let until = now_secs.saturating_add(overlap.as_secs());
        let former = Former { certificate: self.certificate.clone(), cross, until };
        let text = key.serialize_pem() + &pem_text("CERTIFICATE", &certificate) + &former.to_text();
        write(&folder.join(ROTATION_FILE), &text, Access::Secret)?;
        complete(folder)?;
        let (former, issuer) = (Some(former), Issuer::new(params, key));
        let (lifetimes, generation) = (self.lifetimes, self.generation);
        Ok(Self { issuer, certificate, lifetimes, generation, former })
    }

    /// Returns this authority without the former one if that one's time is over; otherwise None.
    pub fn past_overlap(
        &self,
        folder: &Path,
        now_secs: u64,
    ) -> Result<Option<Self>, AuthorityError> {
        match self.former_until() {
            Some(until) if until <= now_secs => {
                let current = Self::open(folder)?.with_lifetimes(self.lifetimes);
                let current = current.with_generation(self.generation);
                remove(&folder.join(FORMER_FILE))?;
                Ok(Some(Self { former: None, ..current }))
            }
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::certificate::{CERTIFICATE_FILE, KEY_FILE};
    use crate::authority::former::UNTIL;

    #[test]
    fn an_interrupted_rotation_is_completed_at_the_next_start() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        let first = Authority::open_or_create(folder.path()).unwrap();
        let before: Vec<Vec<u8>> = [KEY_FILE, CERTIFICATE_FILE]
            .iter()
            .map(|name| std::fs::read(place(name)).unwrap())
            .collect();
        let second = first.rotate(folder.path(), 100, Duration::from_secs(50)).unwrap();
        assert_ne!(first.pin(), second.pin());
        assert!(matches!(
            second.rotate(folder.path(), 149, Duration::ZERO),
            Err(AuthorityError::Rotating(1))
        ));
        let all = [KEY_FILE, CERTIFICATE_FILE, FORMER_FILE]
            .map(|name| std::fs::read_to_string(place(name)).unwrap());
        // The process ended after the commit, with none, one or both of the authority's files
        // replaced.
        for replaced in 0..3 {
            for (index, name) in [KEY_FILE, CERTIFICATE_FILE].iter().enumerate() {
                let bytes = if index < replaced { all[index].as_bytes() } else { &before[index] };
                std::fs::write(place(name), bytes).unwrap();
            }
            let rotation = all.concat().replace(UNTIL, &format!("\n{UNTIL}"));
            std::fs::write(place(ROTATION_FILE), rotation).unwrap();
            let opened = Authority::open_or_create(folder.path()).unwrap();
            assert_eq!(
                (opened.pin(), opened.former_until()),
                (second.pin(), Some(150)),
                "{replaced}"
            );
            assert!(!place(ROTATION_FILE).exists());
        }
        assert!(second.past_overlap(folder.path(), 149).unwrap().is_none());
        let current = second.past_overlap(folder.path(), 150).unwrap().unwrap();
        assert_eq!((current.pin(), current.former_until()), (second.pin(), None));
        assert_eq!(Authority::open(folder.path()).unwrap().former_until(), None);
    }
}
