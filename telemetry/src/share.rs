//! Which traces are wanted: a share of all, by their ids, so that every machine and other programs
//! that use the same share choose the same ones.

use crate::span::TraceId;

/// A share of all traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Traces whose number is below it, of 2⁶³.
    below: u64,
}

impl Share {
    /// All traces.
    pub const ALL: Self = Self { below: 1 << 63 };

    /// Reads `OTEL_TRACES_SAMPLER` and its argument. A trace has no parent elsewhere, so that
    /// `parentbased_` changes nothing. The error says what is wrong.
    pub fn parse(sampler: &str, argument: Option<&str>) -> Result<Self, String> {
        match sampler.strip_prefix("parentbased_").unwrap_or(sampler) {
            "always_on" => Ok(Self::ALL),
            "always_off" => Ok(Self { below: 0 }),
            "traceidratio" => {
                let text = argument.unwrap_or("1");
                let ratio = text.trim().parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
                let ratio: f64 =
                    ratio.ok_or_else(|| format!("{text:?} is no share from 0 to 1"))?;
                Ok(Self { below: (ratio * Self::ALL.below as f64) as u64 })
            }
            _ => Err(format!(
                "{sampler:?} is none of always_on, always_off, traceidratio and the same with \
                 parentbased_"
            )),
        }
    }

    /// Whether a trace is wanted. The rule is that of OpenTelemetry's `TraceIdRatioBased`.
    pub fn has(self, trace: TraceId) -> bool {
        let [.., a, b, c, d, e, f, g, h] = trace.0;
        (u64::from_be_bytes([a, b, c, d, e, f, g, h]) >> 1) < self.below
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_protocol::{FrameNumber, JobId};

    fn count(share: Share) -> usize {
        let job = JobId(uuid::Uuid::from_u128(11));
        let traces = (0..10_000).map(|frame| TraceId::of_frame(job, FrameNumber(frame)));
        traces.filter(|trace| share.has(*trace)).count()
    }

    #[test]
    fn a_share_has_about_as_many_traces_as_it_says() {
        let of = |sampler: &str, argument| count(Share::parse(sampler, argument).unwrap());
        assert_eq!((of("always_on", None), of("always_off", None)), (10_000, 0));
        assert_eq!((of("parentbased_always_on", None), of("traceidratio", None)), (10_000, 10_000));
        let tenth = of("parentbased_traceidratio", Some("0.1"));
        assert!((850..1150).contains(&tenth), "{tenth}");
        assert_eq!(of("traceidratio", Some("0")), 0);
    }

    #[test]
    fn a_share_that_is_none_is_named() {
        for (sampler, argument) in [
            ("jaeger_remote", None),
            ("", None),
            ("traceidratio", Some("2")),
            ("traceidratio", Some("-1")),
            ("traceidratio", Some("NaN")),
            ("traceidratio", Some("much")),
        ] {
            let error = Share::parse(sampler, argument).unwrap_err();
            assert!(error.contains(argument.unwrap_or(sampler)), "{error}");
        }
    }
}
