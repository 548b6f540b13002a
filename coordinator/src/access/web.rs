//! What signing in over HTTP needs: tokens, links, and the address of the pages.

use super::bearers::Bearers;
use super::links::Links;
use crate::store::{StoreQueue, TokenHash};
use std::sync::OnceLock;
use tessera_transport::TokenRecord;

/// Who is signed in over HTTP, and how one signs in.
#[derive(Debug)]
pub(crate) struct WebAccess {
    pub(crate) bearers: Bearers,
    pub(crate) links: Links,
    /// Address at which pages are served; unset where none are.
    pub(crate) base: OnceLock<String>,
}

impl WebAccess {
    /// Begins with the tokens of the store. Changes go to `store`.
    pub(crate) fn new(
        records: impl IntoIterator<Item = (TokenHash, TokenRecord)>,
        store: StoreQueue,
    ) -> Self {
        let bearers = Bearers::new(records, store);
        Self { bearers, links: Links::default(), base: OnceLock::new() }
    }
}
