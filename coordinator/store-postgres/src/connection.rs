//! Connections to the database, with a time for everything.

use crate::address::StoreAddress;
use crate::link_error::{LinkError, understood};
use crate::tls;
use std::future::Future;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Connection, NoTls, Row};

/// Time for a connection to be made.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// How long sent bytes may be unacknowledged before the system ends the connection.
const UNACKNOWLEDGED_TIME: Duration = Duration::from_secs(10);
/// Time of the database for one statement, in milliseconds. It is longer than what is waited for
/// here, so a statement that is given up here ends there too.
const STATEMENT_MILLIS: u64 = 300_000;

/// Parameters of a statement, with their types: nothing is prepared under a name.
pub(crate) type Parameters<'a> = [(&'a (dyn ToSql + Sync), Type)];

/// One connection. It ends with this value.
pub(crate) struct Link {
    client: Client,
    task: JoinHandle<()>,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Link {
    /// Connects to the first host that takes writes.
    pub(crate) async fn open(address: &StoreAddress) -> Result<Self, LinkError> {
        let options = format!("-c statement_timeout={STATEMENT_MILLIS}");
        match Self::open_with(address, Some(&options)).await {
            // A pooler may refuse options of a connection. Statements are still bounded here.
            Err(LinkError::Refused(_, state)) if state == SqlState::PROTOCOL_VIOLATION => {
                Self::open_with(address, None).await
            }
            opened => opened,
        }
    }

    async fn open_with(address: &StoreAddress, options: Option<&str>) -> Result<Self, LinkError> {
        let mut config = address.config.clone();
        config.application_name("tessera").tcp_user_timeout(UNACKNOWLEDGED_TIME);
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        config.keepalives_idle(UNACKNOWLEDGED_TIME);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIME);
        }
        if let Some(options) = options {
            config.options(options);
        }
        let opening = async {
            Ok(match tls::connector(&address.protection)? {
                Some(tls) => {
                    config.ssl_mode(tokio_postgres::config::SslMode::Require);
                    Self::of(config.connect(tls).await.map_err(understood)?)
                }
                None => {
                    config.ssl_mode(tokio_postgres::config::SslMode::Disable);
                    Self::of(config.connect(NoTls).await.map_err(understood)?)
                }
            })
        };
        within(CONNECT_TIME * 2, opening).await
    }

    fn of<S, T>((client, connection): (Client, Connection<S, T>)) -> Self
    where
        Connection<S, T>: Future<Output = Result<(), tokio_postgres::Error>> + Send + 'static,
    {
        // Its error reaches whoever waits for an answer.
        let task = tokio::spawn(async move { drop(connection.await) });
        Self { client, task }
    }

    /// Sends one statement and waits for its rows, for at most `time`.
    pub(crate) async fn rows(
        &self,
        statement: &str,
        parameters: &Parameters<'_>,
        time: Duration,
    ) -> Result<Vec<Row>, LinkError> {
        let asked = self.client.query_typed(statement, parameters);
        within(time, async { asked.await.map_err(understood) }).await
    }

    /// Sends statements as one message. They happen as a whole or not at all.
    pub(crate) async fn run(&self, statements: &str, time: Duration) -> Result<(), LinkError> {
        let asked = self.client.batch_execute(statements);
        within(time, async { asked.await.map_err(understood) }).await
    }
}

async fn within<T>(
    time: Duration,
    asked: impl Future<Output = Result<T, LinkError>>,
) -> Result<T, LinkError> {
    tokio::time::timeout(time, asked).await.unwrap_or_else(|_| {
        Err(LinkError::Unknown(format!("no answer within {:.1} s", time.as_secs_f64())))
    })
}
