//! What every request of HTTP uses.

use crate::address::Place;
use crate::hub::Hub;
use crate::inspect::{Inspector, Looks};
use crate::metrics::counts::Counts;
use crate::oidc::Oidc;
use crate::rates::{Buckets, Rate};
use std::net::IpAddr;
use std::sync::Arc;
use tessera_coordinator::api::Api;

/// Requests of one identity: pages ask for some twenty things at once.
const REQUESTS: Rate = Rate { steady: 50.0, burst: 200.0 };
/// Requests of one address by nobody that is known.
const STRANGERS: Rate = Rate { steady: 5.0, burst: 50.0 };

/// What every request uses. Clones are cheap.
pub(crate) type Shared = Arc<State>;

/// What every request uses.
pub(crate) struct State {
    pub(crate) api: Api,
    pub(crate) place: Place,
    pub(crate) hub: Hub,
    pub(crate) requests: Buckets<u64>,
    pub(crate) strangers: Buckets<IpAddr>,
    /// Name of the session's cookie.
    pub(crate) cookie: String,
    /// Requests, counted for monitoring.
    pub(crate) counts: Counts,
    /// Reads scenes before they are submitted.
    pub(crate) looks: Looks,
    /// Signing in by a provider, where there is one.
    pub(crate) oidc: Option<Arc<Oidc>>,
}

impl State {
    /// State for pages at this place.
    pub(crate) fn new(
        (api, inspector): (Api, Option<Arc<dyn Inspector>>),
        (place, oidc): (Place, Option<Arc<Oidc>>),
        port: u16,
    ) -> Self {
        // Cookies do not know ports: two coordinators of one machine would share one.
        let cookie = match place.is_secure {
            true => format!("__Host-tessera-{port}"),
            false => format!("tessera-{port}"),
        };
        Self {
            hub: Hub::new(api.clone()),
            api,
            place,
            requests: Buckets::new(REQUESTS),
            strangers: Buckets::new(STRANGERS),
            cookie,
            counts: Counts::default(),
            looks: Looks::new(inspector),
            oidc,
        }
    }
}
