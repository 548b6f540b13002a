//! Requests to a metadata service: one short HTTP/1.1 exchange each, with limits for time and
//! bytes. Not for any other server.

use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longest time for an exchange. The service runs on the machine's own host.
const WITHIN: Duration = Duration::from_secs(3);
/// Longest answer in bytes.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum MetadataError {
    /// The request failed on the network.
    #[error("cannot ask `{0}`")]
    Io(String, #[source] std::io::Error),
    /// No answer came in time.
    #[error("no answer from `{0}`")]
    Silent(String),
    /// The received bytes are not a valid answer.
    #[error("the answer of `{0}` is {1}")]
    Strange(String, &'static str),
    /// The service answered with an error status.
    #[error("`{0}` answers {1} to {2}")]
    Status(String, u16, &'static str),
}

/// Client of a cloud's metadata service.
#[derive(Debug)]
pub(super) struct Metadata {
    address: String,
    /// Value that the service gave for later requests: a token, or this machine's name.
    pub(super) kept: Option<String>,
}

/// Answer of the service.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: String,
}

impl Metadata {
    pub(super) fn new(address: &str) -> Self {
        Self { address: address.to_owned(), kept: None }
    }

    pub(super) fn status_error(&self, answer: &Answer, path: &'static str) -> MetadataError {
        MetadataError::Status(self.address.clone(), answer.status, path)
    }

    /// Sends a request. `header` is one more line, without its end. Its content comes from this
    /// program or from the service.
    pub(super) async fn ask(
        &self,
        method: &str,
        path: &str,
        header: &str,
    ) -> Result<Answer, MetadataError> {
        let exchange = async {
            let mut stream = TcpStream::connect(&self.address).await?;
            let request = format!(
                "{method} {path} HTTP/1.1\r\nHost: {}\r\n{header}\r\nContent-Length: \
                    0\r\nConnection: close\r\n\r\n",
                self.address
            );
            stream.write_all(request.as_bytes()).await?;
            let mut bytes = Vec::new();
            stream.take(ANSWER_BYTES_MAX).read_to_end(&mut bytes).await?;
            Ok(bytes)
        };
        let bytes = match tokio::time::timeout(WITHIN, exchange).await {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(error)) => return Err(MetadataError::Io(self.address.clone(), error)),
            Err(_) => return Err(MetadataError::Silent(self.address.clone())),
        };
        parse(&bytes).map_err(|problem| MetadataError::Strange(self.address.clone(), problem))
    }
}

/// Parses an answer that ends with its connection.
pub(super) fn parse(bytes: &[u8]) -> Result<Answer, &'static str> {
    let text = std::str::from_utf8(bytes).map_err(|_| "no text")?;
    let (head, body) = text.split_once("\r\n\r\n").ok_or("cut short")?;
    let mut lines = head.lines();
    let first = lines.next().filter(|line| line.starts_with("HTTP/1.")).ok_or("no HTTP")?;
    let status =
        first.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or("without a status")?;
    let fields: Vec<(String, &str)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim()))
        .collect();
    let field =
        |name: &str| fields.iter().find(|(other, _)| other == name).map(|(_, value)| *value);
    let body = match (field("transfer-encoding"), field("content-length")) {
        (Some(coding), _) if coding.eq_ignore_ascii_case("chunked") => unchunk(body)?,
        (_, Some(length)) => {
            let length: usize = length.parse().map_err(|_| "of no length")?;
            body.get(..length).ok_or("cut short")?.to_owned()
        }
        _ => body.to_owned(),
    };
    Ok(Answer { status, body })
}

fn unchunk(mut rest: &str) -> Result<String, &'static str> {
    let mut body = String::new();
    loop {
        let (size, behind) = rest.split_once("\r\n").ok_or("cut short")?;
        let digits = size.split(';').next().unwrap_or(size).trim();
        let size = usize::from_str_radix(digits, 16).map_err(|_| "in chunks of no size")?;
        if size == 0 {
            return Ok(body);
        }
        body.push_str(behind.get(..size).ok_or("cut short")?);
        rest = behind.get(size..).and_then(|rest| rest.strip_prefix("\r\n")).ok_or("cut short")?;
    }
}
