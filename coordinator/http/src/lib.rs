//! HTTP: the farm's API, its pages, events and metrics. A second door to the coordinator's
//! requests ([`tessera_coordinator::api`]), which check roles and owners for it as for QUIC.
//!
//! It runs on threads of its own and reads what the coordinator publishes, so that it never stands
//! on the way of a commit.

mod address;
mod api;
mod asking;
mod auth;
mod crowd;
mod forms;
mod guard;
mod hub;
mod inspect;
mod metrics;
mod oidc;
pub mod outward;
mod pages;
mod passing;
mod problem;
mod rates;
mod server;
mod spans;
mod stall;
mod state;
mod stream;
mod templates;
mod tls;
mod views;

pub use address::{AddressError, HttpConfig, TlsChoice};
pub use api::openapi;
pub use inspect::{Inspector, Seen};
pub use oidc::{OidcConfig, OidcError};
pub use server::{HttpError, HttpServer};
pub use templates::{
    BatchAsked, PlannedJob, TemplateAsked, TemplateOutline, TemplateParameter, TemplatePlan,
};
