//! Writing metrics down: in OpenMetrics 1.0, or in Prometheus's own text format 0.0.4 for whoever doesn't ask
//! for that (as `qdrouterd` does).
//!
//! The two differ in little: OpenMetrics names a family of counters without `_total`, has units, and an end.

use super::families::{Family, Kind, Sample};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use std::collections::HashSet;
use std::fmt;

/// A format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Exposition {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus's text format 0.0.4.
    Text,
}

impl Exposition {
    /// The format for what a client accepts (its header `Accept`).
    pub(super) fn accepted(accept: &str) -> Self {
        if accept.contains("application/openmetrics-text") { Self::OpenMetrics } else { Self::Text }
    }

    /// What an answer in it says that it is.
    pub(super) const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// Writes all families down.
///
/// # Errors
/// None that is known: the encoder's own.
pub(super) fn write(families: &[Family], exposition: Exposition) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Collected(families.to_vec())));
    let mut written = String::new();
    prometheus_client::encoding::text::encode(&mut written, &registry)?;
    Ok(match exposition {
        Exposition::OpenMetrics => written,
        Exposition::Text => as_text(&written, families),
    })
}

/// The same in the older format.
fn as_text(written: &str, families: &[Family]) -> String {
    let counters: HashSet<&str> =
        families.iter().filter(|family| family.kind == Kind::Counter).map(|family| &*family.name).collect();
    let mut text = String::with_capacity(written.len());
    for line in written.lines() {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("EOF" | "UNIT"), ..) => continue,
            (Some("#"), Some(what), Some(name), Some(rest)) if counters.contains(name) => {
                text.push_str(&format!("# {what} {name}_total {rest}"));
            }
            (..) => text.push_str(line),
        }
        text.push('\n');
    }
    text
}

/// The families, for the encoder to ask for.
#[derive(Debug)]
struct Collected(Vec<Family>);

impl Collector for Collected {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for family in &self.0 {
            let kind = match family.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
                Kind::Histogram => MetricType::Histogram,
            };
            let mut metrics = encoder.encode_descriptor(&family.name, family.help, None, kind)?;
            for (labels, sample) in &family.samples {
                let mut metric = metrics.encode_family(labels)?;
                match (family.kind, sample) {
                    (Kind::Counter, Sample::Whole(number)) => ConstCounter::new(*number).encode(metric)?,
                    (Kind::Counter, Sample::Real(number)) => ConstCounter::new(*number).encode(metric)?,
                    (_, Sample::Whole(number)) => {
                        ConstGauge::new(i64::try_from(*number).unwrap_or(i64::MAX)).encode(metric)?;
                    }
                    (_, Sample::Real(number)) => ConstGauge::new(*number).encode(metric)?,
                    (_, Sample::Buckets { sum, count, buckets }) => {
                        metric.encode_histogram::<NoLabelSet>(*sum, *count, buckets, None)?;
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn families() -> Vec<Family> {
        let shard = |number: u64| vec![("shard", number.to_string())];
        vec![
            Family {
                name: "a_turns".into(),
                help: "Turns.",
                kind: Kind::Counter,
                samples: vec![(shard(0), Sample::Whole(5)), (shard(1), Sample::Whole(u64::MAX))],
            },
            Family {
                name: "qdr_links_total".into(),
                help: "Links.",
                kind: Kind::Gauge,
                samples: vec![(Vec::new(), Sample::Whole(3))],
            },
            Family {
                name: "a_seconds".into(),
                help: "Times.",
                kind: Kind::Histogram,
                samples: vec![(
                    Vec::new(),
                    Sample::Buckets {
                        sum: 0.5,
                        count: 3,
                        buckets: vec![(0.1, 1), (0.2, 1), (f64::INFINITY, 1)],
                    },
                )],
            },
        ]
    }

    /// By the examples of OpenMetrics 1.0: a counter's family is named without its suffix.
    #[test]
    fn open_metrics() {
        let written = write(&families(), Exposition::OpenMetrics).expect("it can be written");
        let wanted = "\
# HELP a_turns Turns.
# TYPE a_turns counter
a_turns_total{shard=\"0\"} 5
a_turns_total{shard=\"1\"} 18446744073709551615
# HELP qdr_links_total Links.
# TYPE qdr_links_total gauge
qdr_links_total 3
# HELP a_seconds Times.
# TYPE a_seconds histogram
a_seconds_sum 0.5
a_seconds_count 3
a_seconds_bucket{le=\"0.1\"} 1
a_seconds_bucket{le=\"0.2\"} 2
a_seconds_bucket{le=\"+Inf\"} 3
# EOF
";
        assert_eq!(written, wanted);
    }

    /// By the description of the format at prometheus.io: a counter is named as its samples are.
    #[test]
    fn text_format() {
        let written = write(&families(), Exposition::Text).expect("it can be written");
        assert!(
            written.contains("# HELP a_turns_total Turns.\n# TYPE a_turns_total counter\na_turns_total{")
        );
        assert!(written.contains("# TYPE qdr_links_total gauge\nqdr_links_total 3\n"));
        assert!(!written.contains("# EOF"));
    }

    #[test]
    fn who_asks_for_open_metrics_gets_them() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.4";
        assert_eq!(Exposition::accepted(prometheus), Exposition::OpenMetrics);
        for other in ["", "*/*", "text/plain", "text/html,application/xhtml+xml"] {
            assert_eq!(Exposition::accepted(other), Exposition::Text);
        }
    }
}
