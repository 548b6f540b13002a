//! The file of events, checked: targets, and which events each gets.

use crate::address::{Allow, bare};
use crate::event::EventKind;
use crate::file::{File, Mail, Recipient, Webhook};
use crate::secret::{SIGNING_MIN, Secret};
use crate::wanted::Wanted;
use hyper::Uri;
use lettre::message::Mailbox;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tessera_protocol::job::is_target_name;
use tessera_protocol::limits::TARGET_NAME_MAX;
use tessera_transport::files;
use toml::Spanned;

/// Longest file, in bytes.
const FILE_BYTES_MAX: u64 = 256 << 10;
/// Most targets. Each has a queue of a megabyte or two.
const TARGETS_MAX: usize = 64;
/// Most lines of `allow`.
const ALLOW_MAX: usize = 256;
/// Most addresses of one recipient.
const ADDRESSES_MAX: usize = 32;
/// Longest URL, in bytes.
const URL_MAX: usize = 2048;
/// How long a job has to wait before it is told, where the file does not say.
const WAITING_SECS: u64 = 60;
/// How long events are gathered into one mail, where the file does not say.
const GATHER_SECS: u64 = 60;

/// Why a file of events is not used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("--events `{path}` cannot be read")]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        #[source]
        source: std::io::Error,
    },
    /// The file has another form.
    #[error("--events `{path}`: {problem}")]
    Form {
        /// Path of the file.
        path: PathBuf,
        /// What is wrong, with its line.
        problem: String,
    },
    /// A value cannot be meant.
    #[error("--events `{path}`, line {line}: {problem}")]
    Wrong {
        /// Path of the file.
        path: PathBuf,
        /// Line, counted from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
}

/// Whom the coordinator tells what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventsConfig {
    pub(crate) allow: Allow,
    /// How long a job has to wait before it is told.
    pub(crate) patience: Duration,
    pub(crate) webhooks: Vec<WebhookConfig>,
    pub(crate) mail: Option<MailConfig>,
}

/// A webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WebhookConfig {
    pub(crate) name: String,
    pub(crate) url: Url,
    pub(crate) secret: Secret,
    pub(crate) wanted: Wanted,
}

/// An address for requests, in its parts.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) is_tls: bool,
    /// Host without the brackets of IPv6.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Host and port as they are written.
    pub(crate) authority: String,
    /// Path and query. They may have a secret in them.
    pub(crate) path: String,
}

impl std::fmt::Debug for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Url({}, path hidden)", self.authority)
    }
}

/// How the connection to a server for mails is kept secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tls {
    /// From the first byte on.
    Whole,
    /// After a greeting in the clear.
    AfterGreeting,
    /// Not at all: on this machine only.
    None,
}

/// The server for mails, and who gets some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MailConfig {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) tls: Tls,
    pub(crate) from: Mailbox,
    pub(crate) credentials: Option<(String, Secret)>,
    /// How long events are gathered into one mail.
    pub(crate) gather: Duration,
    pub(crate) to: Vec<RecipientConfig>,
}

/// Who gets mails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecipientConfig {
    pub(crate) name: String,
    pub(crate) to: Vec<Mailbox>,
    pub(crate) wanted: Wanted,
}

impl EventsConfig {
    /// Reads a file, and the secrets that it names. Paths in it begin at its folder.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let failed = |source| ConfigError::Read { path: path.to_path_buf(), source };
        let bytes = files::read_bounded(path, FILE_BYTES_MAX).map_err(failed)?;
        let wrong = |problem| ConfigError::Form { path: path.to_path_buf(), problem };
        let text = String::from_utf8(bytes).map_err(|_| wrong("it is no text".to_owned()))?;
        let file: File = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        checked(file, files::folder_of(path)).map_err(|(at, problem)| {
            let before = text.bytes().take(at);
            let line = 1 + before.filter(|byte| *byte == b'\n').count();
            ConfigError::Wrong { path: path.to_path_buf(), line, problem }
        })
    }
}

/// What is wrong, and at which byte.
type Wrong = (usize, String);

fn checked(file: File, folder: &Path) -> Result<EventsConfig, Wrong> {
    let File { allow, waiting_secs, webhook, mail } = file;
    let allow = allow.map(allowed).transpose()?.unwrap_or_default();
    let patience = match waiting_secs {
        Some(secs) => within(&secs.span(), "waiting-secs", *secs.get_ref(), 1..=86_400)?,
        None => Duration::from_secs(WAITING_SECS),
    };
    let mut names = BTreeSet::new();
    let mut webhooks = Vec::new();
    for one in webhook {
        let (at, one) = (one.span().start, one.into_inner());
        let name = one.name.clone();
        named(&mut names, &name).map_err(|problem| (at, problem))?;
        let checked = of_webhook(one, (&allow, folder));
        webhooks.push(checked.map_err(|problem| (at, format!("webhook `{name}`: {problem}")))?);
    }
    let mail = mail.map(|mail| of_mail(mail, &mut names, folder)).transpose()?;
    match names.len() {
        0 => Err((0, "it has no target: neither [[webhook]] nor [[mail.to]]".to_owned())),
        count if count > TARGETS_MAX => {
            Err((0, format!("it has {count} targets, and {TARGETS_MAX} are the most")))
        }
        _ => Ok(EventsConfig { allow, patience, webhooks, mail }),
    }
}

fn allowed(lines: Spanned<Vec<String>>) -> Result<Allow, Wrong> {
    let at = lines.span().start;
    if lines.get_ref().len() > ALLOW_MAX {
        return Err((at, format!("`allow` has more than {ALLOW_MAX} lines")));
    }
    Allow::parse(lines.get_ref()).map_err(|line| {
        let text = "is neither a host, an address nor a net, such as hooks.example.org:8080, \
            10.0.0.5 or 10.0.0.0/24";
        (at, format!("`{line}` in `allow` {text}"))
    })
}

fn within(
    span: &Range<usize>,
    key: &str,
    secs: u64,
    range: RangeInclusive<u64>,
) -> Result<Duration, Wrong> {
    match range.contains(&secs) {
        true => Ok(Duration::from_secs(secs)),
        false => {
            let text = format!("{key} is {secs}, not in {} to {}", range.start(), range.end());
            Err((span.start, text))
        }
    }
}

fn named(names: &mut BTreeSet<String>, name: &str) -> Result<(), String> {
    if !is_target_name(name) {
        return Err(format!(
            "the name {name:?} of a target is not 1 to {TARGET_NAME_MAX} letters, \
            digits, dots, hyphens and underscores"
        ));
    }
    match names.insert(name.to_owned()) {
        true => Ok(()),
        false => Err(format!("two targets have the name `{name}`")),
    }
}

fn of_webhook(raw: Webhook, (allow, folder): (&Allow, &Path)) -> Result<WebhookConfig, String> {
    let Webhook { name, url, secret_file, secret_env, .. } = raw;
    let url = url_of(&url)?;
    if !url.is_tls && !allow.lists_host(&url.host, url.port) {
        let host = &url.authority;
        return Err(format!(
            "http:// to {host} only if `allow` lists it, as nothing hides what is \
            sent; use https://"
        ));
    }
    let file = secret_file.map(|path| folder.join(path));
    let secret = Secret::read("secret", (file.as_deref(), secret_env.as_deref()))?;
    let secret = secret.ok_or("it has no secret: give secret-file or secret-env")?;
    if secret.text().len() < SIGNING_MIN {
        return Err(format!("its secret is shorter than {SIGNING_MIN} bytes"));
    }
    let on_request = raw.on_request.then(|| name.clone());
    let wanted = wanted(&raw.events, [raw.owner, raw.job, raw.batch, on_request])?;
    Ok(WebhookConfig { name, url, secret, wanted })
}

/// Takes an address apart. Its text is not repeated: a path may have a secret in it.
fn url_of(text: &str) -> Result<Url, String> {
    let wrong = || "its url is not https:// with a host, and perhaps a port and a path".to_owned();
    let uri: Uri = text.parse().map_err(|_| wrong())?;
    let authority = uri.authority().ok_or_else(wrong)?;
    if authority.as_str().contains('@') || text.len() > URL_MAX || text.contains('#') {
        return Err(format!("its url has a user, a fragment, or more than {URL_MAX} bytes"));
    }
    let is_tls = match uri.scheme_str() {
        Some("https") => true,
        Some("http") => false,
        _ => return Err(wrong()),
    };
    let host = bare(authority.host()).to_owned();
    let port = match authority.port() {
        Some(port) => port.as_u16(),
        None if is_tls => 443,
        None => 80,
    };
    if host.is_empty() || port == 0 {
        return Err(wrong());
    }
    let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    Ok(Url { is_tls, host, port, authority: authority.as_str().to_owned(), path })
}

fn wanted(events: &[String], of: [Option<String>; 4]) -> Result<Wanted, String> {
    let known = || EventKind::ASKED.map(EventKind::name).join(", ");
    let mut kinds = BTreeSet::new();
    for name in events {
        let kind = EventKind::ASKED.into_iter().find(|kind| kind.name() == name);
        kinds.insert(kind.ok_or_else(|| format!("no event is `{name}`: there are {}", known()))?);
    }
    let [owner, job, batch, on_request] = of;
    let wanted = Wanted { kinds, owner, job, batch, on_request };
    if wanted.kinds.is_empty() {
        return Err(format!("`events` is empty: there are {}", known()));
    }
    if wanted.is_of_some_jobs() && wanted.kinds.contains(&EventKind::Budget) {
        return Err(
            "`budget` is about owners, and job, batch and on-request are about jobs: give it a \
            target without them"
                .to_owned(),
        );
    }
    if wanted.is_of_jobs() && wanted.kinds.contains(&EventKind::Quarantine) {
        return Err("`quarantine` is about nodes, and owner, job, batch and on-request are about \
            jobs: give it a target without them"
            .to_owned());
    }
    Ok(wanted)
}

fn of_mail(
    raw: Spanned<Mail>,
    names: &mut BTreeSet<String>,
    folder: &Path,
) -> Result<MailConfig, Wrong> {
    let (span, raw) = (raw.span(), raw.into_inner());
    let about = |problem: String| (span.start, format!("mail: {problem}"));
    let (host, port) = server_of(&raw.server).map_err(about)?;
    let tls = match raw.tls.as_str() {
        "tls" => Tls::Whole,
        "starttls" => Tls::AfterGreeting,
        "none" if is_local(&host) => Tls::None,
        "none" => {
            let text = format!(
                "tls = \"none\" is for a server on this machine, and {host} is not \
                a loopback address"
            );
            return Err(about(text));
        }
        other => return Err(about(format!("tls is `{other}`, not tls, starttls or none"))),
    };
    let from = mailbox(&raw.from).map_err(about)?;
    let file = raw.password_file.map(|path| folder.join(path));
    let password = Secret::read("password", (file.as_deref(), raw.password_env.as_deref()));
    let credentials = match (raw.user, password.map_err(about)?) {
        (Some(user), Some(password)) => Some((user, password)),
        (None, None) => None,
        _ => return Err(about("user goes with password-file or password-env".to_owned())),
    };
    let gather = raw.gather_secs.unwrap_or(GATHER_SECS);
    let gather = within(&span, "gather-secs", gather, 1..=86_400)?;
    let mut to = Vec::new();
    for one in raw.to {
        let (at, one) = (one.span().start, one.into_inner());
        let name = one.name.clone();
        named(names, &name).map_err(|problem| (at, problem))?;
        let checked = of_recipient(one);
        to.push(checked.map_err(|problem| (at, format!("mail to `{name}`: {problem}")))?);
    }
    Ok(MailConfig { host, port, tls, from, credentials, gather, to })
}

fn of_recipient(raw: Recipient) -> Result<RecipientConfig, String> {
    let Recipient { name, to, .. } = raw;
    if to.is_empty() || to.len() > ADDRESSES_MAX {
        return Err(format!("`to` has 1 to {ADDRESSES_MAX} addresses"));
    }
    let to = to.iter().map(|text| mailbox(text)).collect::<Result<_, _>>()?;
    let on_request = raw.on_request.then(|| name.clone());
    let wanted = wanted(&raw.events, [raw.owner, raw.job, raw.batch, on_request])?;
    Ok(RecipientConfig { name, to, wanted })
}

fn mailbox(text: &str) -> Result<Mailbox, String> {
    text.parse().map_err(|error| format!("`{text}` is no mail address: {error}"))
}

fn server_of(text: &str) -> Result<(String, u16), String> {
    let parts = text.rsplit_once(':').map(|(host, port)| (host, port.parse()));
    match parts {
        Some((host, Ok(port)))
            if port > 0 && !host.is_empty() && (host.starts_with('[') || !host.contains(':')) =>
        {
            Ok((bare(host).to_owned(), port))
        }
        _ => Err(format!("server is `{text}`, not HOST:PORT")),
    }
}

/// Whether a server without TLS may be there: no lookup of a name can lead elsewhere.
fn is_local(host: &str) -> bool {
    host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
