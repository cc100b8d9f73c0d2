//! The figures that a measurement gives.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A figure; [`title`](Metric::title) says which. Their order is the order of columns.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    Throughput,
    CpuPerMessage,
    SystemCallsPerMessage,
    SwitchesPerMessage,
    AllocationsPerMessage,
    FutexCallsPerMessage,
    LocksPerMessage,
    CpuShare,
    Resident,
    P50,
    P90,
    P99,
    P999,
    P9999,
    Max,
    Missing,
    NotAccepted,
    Sent,
    Received,
    Dropped,
    Unaccounted,
    MemoryGrowth,
    Connections,
    BytesPerConnection,
    Start,
}

/// All figures of one run.
pub type Figures = BTreeMap<Metric, f64>;

/// Which way is better.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Better {
    /// More.
    Higher,
    /// Less.
    Lower,
    /// Neither: it only says what happened.
    Neither,
}

impl Metric {
    /// The heading of its column, with its unit.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Throughput => "msg/s",
            Self::CpuPerMessage => "CPU µs/msg",
            Self::SystemCallsPerMessage => "syscalls/msg",
            Self::SwitchesPerMessage => "switches/msg",
            Self::AllocationsPerMessage => "allocations/msg",
            Self::FutexCallsPerMessage => "futex calls/msg",
            Self::LocksPerMessage => "locks/msg",
            Self::CpuShare => "CPU %",
            Self::Resident => "RSS MiB",
            Self::P50 => "p50 µs",
            Self::P90 => "p90 µs",
            Self::P99 => "p99 µs",
            Self::P999 => "p99.9 µs",
            Self::P9999 => "p99.99 µs",
            Self::Max => "max µs",
            Self::Missing => "missing",
            Self::NotAccepted => "not accepted",
            Self::Sent => "sent",
            Self::Received => "received",
            Self::Dropped => "dropped (counted)",
            Self::Unaccounted => "unaccounted",
            Self::MemoryGrowth => "RSS growth MiB",
            Self::Connections => "connections",
            Self::BytesPerConnection => "B/connection",
            Self::Start => "start ms",
        }
    }

    /// Which way is better.
    pub const fn better(self) -> Better {
        match self {
            Self::Throughput => Better::Higher,
            Self::CpuPerMessage
            | Self::SystemCallsPerMessage
            | Self::SwitchesPerMessage
            | Self::AllocationsPerMessage
            | Self::FutexCallsPerMessage
            | Self::LocksPerMessage
            | Self::Resident
            | Self::P50
            | Self::P90
            | Self::P99
            | Self::P999
            | Self::P9999
            | Self::Max
            | Self::Missing
            | Self::NotAccepted
            | Self::Unaccounted
            | Self::MemoryGrowth
            | Self::BytesPerConnection
            | Self::Start => Better::Lower,
            Self::CpuShare | Self::Sent | Self::Received | Self::Dropped | Self::Connections => {
                Better::Neither
            }
        }
    }

    /// The percentile that it is.
    pub fn of_percentile(name: &str) -> Option<Self> {
        Some(match name {
            "p50" => Self::P50,
            "p90" => Self::P90,
            "p99" => Self::P99,
            "p99.9" => Self::P999,
            "p99.99" => Self::P9999,
            _ => return None,
        })
    }
}

/// A number with three significant digits, or all of them left of the point: `4.31`, `55.7`, `1234`, `1.60 M`.
pub fn short(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        "-".to_owned()
    } else if size >= 1e6 {
        format!("{:.2} M", value / 1e6)
    } else if size >= 1e5 {
        format!("{:.0} k", value / 1e3)
    } else if size >= 1e4 {
        format!("{:.1} k", value / 1e3)
    } else if size >= 100.0 || value == value.trunc() {
        format!("{value:.0}")
    } else if size >= 10.0 {
        format!("{value:.1}")
    } else if size >= 0.01 {
        format!("{value:.2}")
    } else {
        format!("{value:.4}")
    }
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn numbers_are_short() {
        let cases = [
            (0.0, "0"),
            (0.00123, "0.0012"),
            (0.4771, "0.48"),
            (4.0, "4"),
            (14.42, "14.4"),
            (1296.4, "1296"),
            (13_600.0, "13.6 k"),
            (163_000.0, "163 k"),
            (5_500_000.0, "5.50 M"),
            (f64::NAN, "-"),
        ];
        for (value, text) in cases {
            assert_eq!(short(value), text);
        }
    }
}
