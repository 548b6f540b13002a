//! The form of the file of events, as it is written.

use serde::Deserialize;
use std::path::PathBuf;
use toml::Spanned;

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct File {
    /// Hosts, addresses and nets that are refused otherwise.
    pub(crate) allow: Option<Spanned<Vec<String>>>,
    /// How long a job has to wait before it is told, in seconds.
    pub(crate) waiting_secs: Option<Spanned<u64>>,
    #[serde(default)]
    pub(crate) webhook: Vec<Spanned<Webhook>>,
    pub(crate) mail: Option<Spanned<Mail>>,
}

/// A webhook.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Webhook {
    pub(crate) name: String,
    pub(crate) url: String,
    pub(crate) secret_file: Option<PathBuf>,
    pub(crate) secret_env: Option<String>,
    pub(crate) events: Vec<String>,
    pub(crate) owner: Option<String>,
    pub(crate) job: Option<String>,
    pub(crate) batch: Option<String>,
    #[serde(default)]
    pub(crate) on_request: bool,
}

/// The server for mails, and who gets some.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Mail {
    pub(crate) server: String,
    pub(crate) tls: String,
    pub(crate) from: String,
    pub(crate) user: Option<String>,
    pub(crate) password_file: Option<PathBuf>,
    pub(crate) password_env: Option<String>,
    /// How long events are gathered into one mail, in seconds.
    pub(crate) gather_secs: Option<u64>,
    #[serde(default)]
    pub(crate) to: Vec<Spanned<Recipient>>,
}

/// Who gets mails.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Recipient {
    pub(crate) name: String,
    pub(crate) to: Vec<String>,
    pub(crate) events: Vec<String>,
    pub(crate) owner: Option<String>,
    pub(crate) job: Option<String>,
    pub(crate) batch: Option<String>,
    #[serde(default)]
    pub(crate) on_request: bool,
}
