//! How metrics are written: one family after the other, each with its rows.

use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use std::fmt;
use tessera_coordinator::api::Spread;

/// Labels of a row.
pub(super) type Labels<'a> = Vec<(&'static str, &'a str)>;

/// A page of metrics that is being written.
pub(super) struct Page<'p, 'e> {
    encoder: &'p mut DescriptorEncoder<'e>,
}

impl<'p, 'e> Page<'p, 'e> {
    /// Begins a page.
    pub(super) fn new(encoder: &'p mut DescriptorEncoder<'e>) -> Self {
        Self { encoder }
    }

    /// Writes values that go up and down, by their labels.
    pub(super) fn gauges<'a>(
        &mut self,
        (name, help): (&str, &str),
        rows: impl IntoIterator<Item = (Labels<'a>, f64)>,
    ) -> fmt::Result {
        let mut family = self.encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        rows.into_iter().try_for_each(|(labels, value)| {
            row(&mut family, &labels, |metric| metric.encode_gauge(&value))
        })
    }

    /// Writes one value that goes up and down; no row where it is not known.
    pub(super) fn gauge(
        &mut self,
        about: (&str, &str),
        value: impl Into<Option<f64>>,
    ) -> fmt::Result {
        self.gauges(about, value.into().map(|value| (Vec::new(), value)))
    }

    /// Writes counts that only grow, by their labels. The name gets its `_total`.
    pub(super) fn counters<'a>(
        &mut self,
        (name, help): (&str, &str),
        rows: impl IntoIterator<Item = (Labels<'a>, f64)>,
    ) -> fmt::Result {
        let mut family = self.encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        rows.into_iter().try_for_each(|(labels, value)| {
            row(&mut family, &labels, |metric| {
                metric.encode_counter::<NoLabelSet, _, f64>(&value, None)
            })
        })
    }

    /// Writes one count that only grows.
    pub(super) fn counter(&mut self, about: (&str, &str), value: u64) -> fmt::Result {
        self.counters(about, [(Vec::new(), value as f64)])
    }

    /// Writes how values are spread.
    pub(super) fn histogram(&mut self, (name, help): (&str, &str), spread: &Spread) -> fmt::Result {
        let mut family = self.encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
        let Spread { buckets, sum, count } = spread;
        family.encode_histogram::<NoLabelSet>(*sum, *count, buckets, None)
    }
}

/// Writes a row. Without labels, the metric stands for itself.
fn row(
    family: &mut MetricEncoder<'_>,
    labels: &Labels<'_>,
    write: impl Fn(&mut MetricEncoder<'_>) -> fmt::Result,
) -> fmt::Result {
    match labels.is_empty() {
        true => write(family),
        false => write(&mut family.encode_family(labels)?),
    }
}

/// Rows of counts that have one label.
pub(super) fn by<'a>(
    label: &'static str,
    counts: impl IntoIterator<Item = (&'a str, u64)>,
) -> impl Iterator<Item = (Labels<'a>, f64)> {
    counts.into_iter().map(move |(name, count)| (vec![(label, name)], count as f64))
}
