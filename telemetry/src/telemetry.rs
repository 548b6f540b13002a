//! The beginning and the end: what a process gives to its parts, by what the environment says.

#[cfg(feature = "otlp")]
use crate::otlp;
use crate::{Lines, Service, Settings, Tracer};

/// What takes the spans and lines of this process.
#[derive(Debug, Default)]
pub struct Telemetry {
    /// Takes spans.
    pub tracer: Tracer,
    /// Takes lines.
    pub lines: Lines,
    #[cfg(feature = "otlp")]
    running: Option<otlp::Running>,
}

impl Telemetry {
    /// Begins, if the environment names a collector. Also returns a sentence for the log, if what
    /// the environment asks for is not done.
    pub fn start(
        service: &Service,
        look: impl Fn(&str) -> Option<String>,
    ) -> (Self, Option<String>) {
        let not_sent = |why: String| {
            (Self::default(), Some(format!("no spans and lines are sent to a collector: {why}")))
        };
        match Settings::read(look) {
            Ok(None) => (Self::default(), None),
            Ok(Some(settings)) => match begin(settings, service) {
                Ok(this) => (this, None),
                Err(why) => not_sent(why),
            },
            Err(why) => not_sent(why.0),
        }
    }

    /// Sends what is left, within two seconds. What is said later goes nowhere.
    pub fn finish(self) {
        #[cfg(feature = "otlp")]
        if let Some(running) = self.running {
            running.finish();
        }
    }
}

#[cfg(feature = "otlp")]
fn begin(settings: Settings, service: &Service) -> Result<Telemetry, String> {
    let (tracer, lines, running) = otlp::start(settings, service, None)?;
    Ok(Telemetry { tracer, lines, running: Some(running) })
}

#[cfg(not(feature = "otlp"))]
fn begin(_: Settings, _: &Service) -> Result<Telemetry, String> {
    let name = crate::settings::ENDPOINT;
    Err(format!("built without otlp, so that {name} changes nothing (cargo build --features otlp)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(endpoint: Option<&str>) -> (Telemetry, Option<String>) {
        let service = Service { name: "tessera-test", version: "1".to_owned() };
        let named = |name: &str| (name == crate::settings::ENDPOINT).then_some(endpoint).flatten();
        Telemetry::start(&service, |name| named(name).map(str::to_owned))
    }

    #[test]
    fn without_a_collector_nothing_is_wanted_or_said() {
        let (telemetry, notice) = start(None);
        assert!(!telemetry.tracer.is_on() && !telemetry.lines.is_on() && notice.is_none());
        telemetry.finish();
    }

    #[cfg(not(feature = "otlp"))]
    #[test]
    fn a_collector_that_the_build_cannot_use_is_one_sentence() {
        let (telemetry, notice) = start(Some("http://127.0.0.1:4318"));
        assert!(!telemetry.tracer.is_on() && !telemetry.lines.is_on());
        let notice = notice.unwrap_or_default();
        assert!(notice.contains("built without otlp"), "{notice}");
    }
}
