//! What the environment says, by the variables that OpenTelemetry defines. The exporter reads the
//! others itself: headers, timeouts, compression.

use crate::share::Share;
use std::fmt;

/// Variables that name a collector.
pub(crate) const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
const LOGS_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT";
/// The only way to send that is there.
const PROTOCOL: &str = "http/protobuf";

/// Who sends.
#[derive(Clone, Debug)]
pub struct Service {
    /// `service.name`, where the environment has none.
    pub name: &'static str,
    /// `service.version`.
    pub version: String,
}

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Which traces; None for none.
    pub traces: Option<Share>,
    /// Whether lines are sent.
    pub logs: bool,
}

/// What the environment asks for cannot be done. Nothing is sent then, and the work goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable(pub String);

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Settings {
    /// Reads the environment. None: no collector is named, and nothing is sent.
    pub fn read(look: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, Unusable> {
        let look = |name: &str| look(name).map(|value| value.trim().to_owned());
        let look = |name: &str| look(name).filter(|value| !value.is_empty());
        if look("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let is_sent = |endpoint: &str, exporter: &str| -> Result<bool, Unusable> {
            match look(exporter).as_deref() {
                Some("none") => return Ok(false),
                Some("otlp") | None => {}
                Some(other) => {
                    return Err(Unusable(format!("{exporter}={other}: only otlp and none are")));
                }
            }
            Ok(look(endpoint).or_else(|| look(ENDPOINT)).is_some())
        };
        let traces = is_sent(TRACES_ENDPOINT, "OTEL_TRACES_EXPORTER")?;
        let logs = is_sent(LOGS_ENDPOINT, "OTEL_LOGS_EXPORTER")?;
        if !traces && !logs {
            return Ok(None);
        }
        for name in [
            "OTEL_EXPORTER_OTLP_PROTOCOL",
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
            "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL",
        ] {
            if let Some(other) = look(name).filter(|value| value != PROTOCOL) {
                return Err(Unusable(format!("{name}={other}: only {PROTOCOL} is there")));
            }
        }
        let traces = match (traces, look("OTEL_TRACES_SAMPLER")) {
            (false, _) => None,
            (true, None) => Some(Share::ALL),
            (true, Some(sampler)) => {
                let argument = look("OTEL_TRACES_SAMPLER_ARG");
                let share = Share::parse(&sampler, argument.as_deref());
                Some(share.map_err(|wrong| Unusable(format!("OTEL_TRACES_SAMPLER: {wrong}")))?)
            }
        };
        Ok(Some(Self { traces, logs }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(environment: &[(&str, &str)]) -> Result<Option<Settings>, String> {
        let look = |name: &str| {
            let found = environment.iter().find(|(one, _)| *one == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Settings::read(look).map_err(|error| error.to_string())
    }

    const HERE: (&str, &str) = (ENDPOINT, "http://127.0.0.1:4318");

    #[test]
    fn nothing_is_sent_where_no_collector_is_named() {
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&[("OTEL_SERVICE_NAME", "x"), (ENDPOINT, " ")]), Ok(None));
        assert_eq!(read(&[HERE, ("OTEL_SDK_DISABLED", "TRUE")]), Ok(None));
        let none = [("OTEL_TRACES_EXPORTER", "none"), ("OTEL_LOGS_EXPORTER", "none")];
        assert_eq!(read(&[HERE, none[0], none[1]]), Ok(None));
    }

    #[test]
    fn each_signal_has_its_own_collector_or_none() {
        let (all, none) = (Some(Share::ALL), None);
        let sent = |traces, logs| Ok(Some(Settings { traces, logs }));
        assert_eq!(read(&[HERE]), sent(all, true));
        assert_eq!(read(&[(TRACES_ENDPOINT, "http://a/")]), sent(all, false));
        assert_eq!(read(&[(LOGS_ENDPOINT, "http://a/")]), sent(none, true));
        assert_eq!(read(&[HERE, ("OTEL_TRACES_EXPORTER", "none")]), sent(none, true));
        assert_eq!(read(&[HERE, ("OTEL_EXPORTER_OTLP_PROTOCOL", PROTOCOL)]), sent(all, true));
    }

    #[test]
    fn what_cannot_be_done_is_named_by_its_variable() {
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", "http/json"),
            ("OTEL_TRACES_SAMPLER", "often"),
            ("OTEL_TRACES_EXPORTER", "zipkin"),
        ] {
            let error = read(&[HERE, (name, value)]).unwrap_err();
            assert!(error.contains(name) && error.contains(value), "{error}");
        }
    }
}
