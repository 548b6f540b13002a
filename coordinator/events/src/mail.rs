//! Mails about events, by SMTP: all events of a while in one mail.

use crate::config::{MailConfig, RecipientConfig, Tls};
use crate::event::{Event, EventKind, JobFacts, NodeFacts};
use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::message::{Mailbox, Message};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{self, TlsParameters};
use lettre::{AsyncSmtpTransport, AsyncTransport, Tokio1Executor};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use tessera_protocol::names::printable;
use tessera_protocol::utc::utc;

/// Most events of a mail. The others of a full queue come in the next one.
pub(crate) const EVENTS_MAX: usize = 500;
/// Longest attempt, from the look-up of the server to its last answer.
const WITHIN: Duration = Duration::from_secs(60);
/// Most characters of a subject, and of a line about an event.
const SUBJECT_MAX: usize = 150;
const LINE_MAX: usize = 600;

/// Sends mails to one recipient of the file.
pub(crate) struct Mailer {
    server: String,
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    to: Vec<Mailbox>,
    pub(crate) gather: Duration,
}

impl std::fmt::Debug for Mailer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mailer({})", self.server)
    }
}

impl Mailer {
    /// A mailer for one recipient. The error says why the server cannot be spoken to.
    pub(crate) fn new(config: &MailConfig, to: &RecipientConfig) -> Result<Self, String> {
        let trusted = || TlsParameters::new(config.host.clone()).map_err(|error| error.to_string());
        let tls = match config.tls {
            Tls::Whole => client::Tls::Wrapper(trusted()?),
            Tls::AfterGreeting => client::Tls::Required(trusted()?),
            Tls::None => client::Tls::None,
        };
        let mut transport = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&config.host)
            .port(config.port)
            .timeout(Some(WITHIN))
            .tls(tls);
        if let Some((user, password)) = &config.credentials {
            let password = password.text().to_owned();
            transport = transport.credentials(Credentials::new(user.clone(), password));
        }
        Ok(Self {
            server: format!("{}:{}", config.host, config.port),
            transport: transport.build(),
            from: config.from.clone(),
            to: to.to.clone(),
            gather: config.gather,
        })
    }

    /// Sends events, and says what went wrong. `now`: seconds since the Unix epoch.
    pub(crate) async fn send(
        &self,
        (events, dropped): (&[Arc<Event>], u64),
        now: u64,
    ) -> Result<(), String> {
        let mail = self.mail((events, dropped), now)?;
        match tokio::time::timeout(WITHIN, self.transport.send(mail)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                let cause = cause.map_or_else(String::new, |cause| format!(": {cause}"));
                Err(format!("{}: {error}{cause}", self.server))
            }
            Err(_) => {
                Err(format!("{}: the mail was not taken in {} s", self.server, WITHIN.as_secs()))
            }
        }
    }

    fn mail(&self, (events, dropped): (&[Arc<Event>], u64), now: u64) -> Result<Message, String> {
        let automatic = HeaderName::new_from_ascii_str("Auto-Submitted");
        let mut mail = Message::builder()
            .from(self.from.clone())
            .subject(subject(events))
            .date(UNIX_EPOCH + Duration::from_secs(now))
            .message_id(Some(format!("<{}@tessera>", message_id(events))))
            .raw_header(HeaderValue::new(automatic, "auto-generated".to_owned()))
            .header(ContentType::TEXT_PLAIN);
        for to in &self.to {
            mail = mail.to(to.clone());
        }
        mail.body(text(events, dropped)).map_err(|error| error.to_string())
    }
}

/// The same for the same events, so that a mail that came twice is seen to be one.
fn message_id(events: &[Arc<Event>]) -> String {
    let mut hasher = blake3::Hasher::new();
    for event in events {
        hasher.update(event.id.as_bytes());
    }
    hasher.finalize().to_hex()[..32].to_owned()
}

fn cut(text: &str, most: usize) -> String {
    match text.chars().count() > most {
        true => text.chars().take(most - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

fn subject(events: &[Arc<Event>]) -> String {
    if let [event] = events {
        return cut(&format!("[tessera] {}", about(event)), SUBJECT_MAX);
    }
    let mut counts: BTreeMap<EventKind, usize> = BTreeMap::new();
    for event in events {
        *counts.entry(event.kind).or_default() += 1;
    }
    let counts: Vec<String> =
        counts.into_iter().map(|(kind, count)| format!("{count} {}", kind.name())).collect();
    format!("[tessera] {} events: {}", events.len(), counts.join(", "))
}

/// What has happened, in a few words.
fn about(event: &Event) -> String {
    let words = match (&event.job, &event.node) {
        (Some(job), _) => {
            let what = match event.kind {
                EventKind::Waiting => "cannot go on",
                kind => kind.name(),
            };
            format!("{what}: job {} of {}", job.name, job.owner)
        }
        (None, Some(node)) => match &node.device {
            Some(device) => format!("{}: {device} of node {}", event.kind.name(), node.name),
            None => format!("{}: node {}", event.kind.name(), node.name),
        },
        (None, None) => match &event.budget {
            Some(budget) => format!("{}: {}", event.kind.name(), budget.note),
            None => "a test: mails of this farm arrive".to_owned(),
        },
    };
    printable(&words)
}

fn text(events: &[Arc<Event>], dropped: u64) -> String {
    let mut text = String::new();
    if dropped > 0 {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{dropped} older events were given up and are not in any mail.\n");
    }
    for event in events {
        let _ = writeln!(text, "{}  {}", utc(event.at), cut(&about(event), LINE_MAX));
        for line in details(event) {
            let _ = writeln!(text, "    {}", cut(&printable(&line), LINE_MAX));
        }
    }
    text
}

fn details(event: &Event) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(JobFacts { id, frames, frames_done, frames_failed, batch, .. }) = &event.job {
        lines.push(format!("{frames_done} of {frames} frames done, {frames_failed} failed"));
        lines.extend(batch.iter().map(|batch| format!("batch {batch}")));
        lines.push(format!("job {id}"));
    }
    if let Some(NodeFacts { id, .. }) = &event.node {
        lines.push(format!("node {id}"));
    }
    let note = event.job.as_ref().map(|job| &job.note);
    let note = note.or(event.node.as_ref().map(|node| &node.note));
    lines.extend(note.filter(|note| !note.is_empty()).cloned());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quarantine(name: &str) -> Arc<Event> {
        let mut event = Event::of_test(name, 1_700_000_000);
        event.kind = EventKind::Quarantine;
        let (id, name) = ("7".to_owned(), name.to_owned());
        let (reason, note) = ("wrong".to_owned(), "it lied\nBcc: x@example.org".to_owned());
        event.node = Some(NodeFacts { id, name, device: None, reason, note });
        Arc::new(event)
    }

    #[test]
    fn one_event_is_the_subject_and_several_are_counted() {
        assert_eq!(subject(&[quarantine("n1")]), "[tessera] quarantine: node n1");
        let test = Arc::new(Event::of_test("x", 1));
        let several = [quarantine("a"), quarantine("b"), test];
        assert_eq!(subject(&several), "[tessera] 3 events: 2 quarantine, 1 test");
    }

    #[test]
    fn names_and_notes_cannot_add_lines() {
        let events = [quarantine("n1\r\nBcc: all@example.org")];
        assert!(!subject(&events).contains(['\r', '\n']));
        let text = text(&events, 3);
        assert!(text.starts_with("3 older events were given up"), "{text}");
        assert!(!text.lines().any(|line| line.starts_with("Bcc")), "{text}");
        assert_eq!(text.lines().count(), 5, "{text}");
    }

    #[test]
    fn long_texts_are_cut() {
        let events = [quarantine(&"é".repeat(5000))];
        assert_eq!(subject(&events).chars().count(), SUBJECT_MAX);
        assert!(text(&events, 0).chars().count() < 2 * LINE_MAX);
    }
}
