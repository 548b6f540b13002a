//! The exchange of hellos on a connection's first stream. `tessera_protocol::hello` owns the bytes.

use crate::close::{CloseCode, close};
use crate::stream::frame::{FrameError, FrameSender, accept_kind};
use crate::timing::Timing;
use quinn::{Connection, ReadExactError, RecvStream};
use tessera_protocol::hello::HELLO_BYTES_FIXED;
use tessera_protocol::names::is_control;
use tessera_protocol::stream::StreamKind;
use tessera_protocol::{Hello, HelloError};

/// Why the exchange of hellos failed.
#[derive(Debug, thiserror::Error)]
pub enum HelloFailure {
    /// The peer's hello is malformed, or names other versions.
    #[error(transparent)]
    Hello(#[from] HelloError),
    /// The hello did not arrive.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// Another stream came first.
    #[error("the peer opened a stream of kind {0:?} before its hello")]
    Early(StreamKind),
}

/// Sends the hello of the dialling side, reads the other one, and agrees on a version. Closes the
/// connection if this fails.
pub(crate) async fn offer(
    connection: &Connection,
    ours: &Hello,
    timing: &Timing,
) -> Result<(Hello, u16), HelloFailure> {
    let exchange = async {
        let (mut sender, mut receiver) = connection.open_bi().await.map_err(FrameError::from)?;
        let bytes = [&[StreamKind::Hello as u8][..], &ours.to_bytes()].concat();
        sender.write_all(&bytes).await.map_err(FrameError::from)?;
        // The only possible error is that the stream has ended already.
        let _ = sender.finish();
        read(&mut receiver).await
    };
    let theirs = bounded(timing, exchange).await;
    settle(connection, theirs)
}

/// Answers with the hello of the accepting side. It is sent even if there is no version in common,
/// so that both sides can name the versions.
pub(crate) async fn answer(
    connection: &Connection,
    ours: &Hello,
    timing: &Timing,
) -> Result<(Hello, u16), HelloFailure> {
    let exchange = async {
        let (sender, receiver) = connection.accept_bi().await.map_err(FrameError::from)?;
        let (kind, mut receiver) = accept_kind(receiver, timing.answer).await?;
        if kind != StreamKind::Hello {
            return Err(HelloFailure::Early(kind));
        }
        let theirs = read(receiver.stream_mut()).await?;
        let mut sender = FrameSender::new(sender);
        sender.send_raw(&ours.to_bytes()).await?;
        sender.finish();
        if theirs.agree().is_err() {
            // The dialling side closes after it has read our hello. If we closed first, the close
            // could overtake the hello.
            let _ = tokio::time::timeout(timing.answer / 4, connection.closed()).await;
        }
        Ok(theirs)
    };
    let theirs = bounded(timing, exchange).await;
    settle(connection, theirs)
}

async fn bounded(
    timing: &Timing,
    exchange: impl Future<Output = Result<Hello, HelloFailure>>,
) -> Result<Hello, HelloFailure> {
    match tokio::time::timeout(timing.answer, exchange).await {
        Ok(result) => result,
        Err(_) => Err(FrameError::Silent(timing.answer).into()),
    }
}

fn settle(
    connection: &Connection,
    theirs: Result<Hello, HelloFailure>,
) -> Result<(Hello, u16), HelloFailure> {
    let result = theirs.and_then(|theirs| {
        let version = theirs.agree()?;
        Ok((theirs, version))
    });
    if let Err(failure) = &result {
        let code = match failure {
            HelloFailure::Hello(HelloError::Version { .. }) => CloseCode::Version,
            HelloFailure::Frame(FrameError::Silent(_)) => CloseCode::Silent,
            _ => CloseCode::Protocol,
        };
        // If the peer has ended the connection, keep the peer's reason.
        if connection.close_reason().is_none() {
            close(connection, code, &failure.to_string());
        }
    }
    result
}

async fn read(stream: &mut RecvStream) -> Result<Hello, HelloFailure> {
    let mut fixed = [0; HELLO_BYTES_FIXED];
    exact(stream, &mut fixed).await?;
    let (_, name_length) = Hello::from_fixed(&fixed)?;
    // The length is one byte, so at most 255.
    let mut bytes = vec![0; HELLO_BYTES_FIXED + name_length];
    bytes[..HELLO_BYTES_FIXED].copy_from_slice(&fixed);
    exact(stream, &mut bytes[HELLO_BYTES_FIXED..]).await?;
    let mut hello = Hello::from_bytes(&bytes)?;
    // The text reaches terminals and logs.
    hello.build = hello.build.chars().map(|c| if is_control(c) { ' ' } else { c }).collect();
    Ok(hello)
}

async fn exact(stream: &mut RecvStream, bytes: &mut [u8]) -> Result<(), HelloFailure> {
    match stream.read_exact(bytes).await {
        Ok(()) => Ok(()),
        Err(ReadExactError::FinishedEarly(_)) => Err(HelloError::Short.into()),
        Err(ReadExactError::ReadError(error)) => Err(FrameError::from(error).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::server::{AcceptError, Server};
    use crate::endpoint::{socket, tls};
    use crate::{Authority, PeerIdentity};
    use quinn::crypto::rustls::QuicClientConfig;
    use std::sync::Arc;
    use std::time::Duration;
    use tessera_protocol::Fingerprint;
    use tessera_protocol::client::Role;

    /// Returns how the server handles a peer that opens its first stream with these bytes, and ends
    /// it or not.
    async fn greeted_with(bytes: &[u8], end: bool) -> (HelloFailure, Option<CloseCode>) {
        let timing = Timing { answer: Duration::from_millis(400), ..Timing::default() };
        let authority = Authority::generate().unwrap();
        let server = Server::bind("127.0.0.1:0".parse().unwrap(), &authority, timing).unwrap();
        let identity =
            authority.issue(&PeerIdentity::new(Role::Artist, "ada", None).unwrap()).unwrap();
        let crypto = QuicClientConfig::try_from(tls::client(&identity).unwrap().0).unwrap();
        let config = quinn::ClientConfig::new(Arc::new(crypto));
        let endpoint = socket::endpoint("127.0.0.1:0".parse().unwrap(), None).unwrap();
        let ours = Hello::ours(Fingerprint([0; 32]));
        let peer = async {
            let address = server.local_address().unwrap();
            let connection =
                endpoint.connect_with(config, address, tls::server_name()).unwrap().await.unwrap();
            let (mut sender, _receiver) = connection.open_bi().await.unwrap();
            sender.write_all(bytes).await.unwrap();
            if end {
                sender.finish().unwrap();
            }
            match connection.closed().await {
                quinn::ConnectionError::ApplicationClosed(close) => {
                    CloseCode::from_number(close.error_code.into_inner())
                }
                other => panic!("{other}"),
            }
        };
        let served = async { server.accept().await.unwrap().establish(&ours).await };
        let (result, code) = tokio::join!(served, peer);
        let Err(AcceptError::Hello(failure)) = result else { panic!("{result:?}") };
        (failure, code)
    }

    #[tokio::test]
    async fn silent_foreign_and_cut_hellos_close_with_a_reason() {
        use StreamKind::{Hello as HelloKind, Request};
        let (failure, code) = greeted_with(&[], false).await;
        assert!(matches!(failure, HelloFailure::Frame(FrameError::Silent(_))), "{failure:?}");
        assert_eq!(code, Some(CloseCode::Silent));

        let foreign =
            [&[HelloKind as u8][..], b"GET / HTTP/1.1\r\nHost: farm.example.org\r\n\r\n"].concat();
        let (failure, code) = greeted_with(&foreign, false).await;
        assert!(matches!(failure, HelloFailure::Hello(HelloError::Foreign)), "{failure:?}");
        assert_eq!(code, Some(CloseCode::Protocol));

        let (failure, _) = greeted_with(&[HelloKind as u8, b'T', b'S'], true).await;
        assert!(matches!(failure, HelloFailure::Hello(HelloError::Short)), "{failure:?}");
        let (failure, _) = greeted_with(&[HelloKind as u8, b'T', b'S'], false).await;
        assert!(matches!(failure, HelloFailure::Frame(FrameError::Silent(_))), "{failure:?}");
        let (failure, _) = greeted_with(&[Request as u8], false).await;
        assert!(matches!(failure, HelloFailure::Early(Request)), "{failure:?}");
    }
}
