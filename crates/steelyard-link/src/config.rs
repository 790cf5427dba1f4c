//! Settings of a medium, as the configuration of `steelyard-agent link` holds them.

use serde::Deserialize;

/// The medium, by its `kind`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind")]
pub enum MediumConfig {
    /// A switch, and a cable of its own to every port.
    #[serde(rename = "point-to-point")]
    PointToPoint(PointConfig),
    /// One shared half-duplex medium with an access point.
    #[serde(rename = "802.11")]
    Wifi(WifiConfig),
}

/// Whether a port sends and receives at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Duplex {
    /// It does.
    #[default]
    Full,
    /// It does one at a time.
    Half,
}

/// Settings of point-to-point links: what a frame meets between two ports.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PointConfig {
    /// Rate of a port's cable, in each direction where it is full duplex, in Mb/s of Ethernet frames without preamble, checksum and
    /// gap; None: unlimited.
    #[serde(default)]
    pub rate_mbit: Option<f64>,
    /// One-way delay from port to port, in ms, without the time on the cables.
    #[serde(default)]
    pub delay_ms: f64,
    /// Half width of the delay's uniform variation, in ms; frames from one port to another never overtake each other.
    #[serde(default)]
    pub jitter_ms: f64,
    /// Frames lost at random between two ports, in per cent.
    #[serde(default)]
    pub loss_percent: f64,
    /// Whether a port sends and receives at the same time.
    #[serde(default)]
    pub duplex: Duplex,
    /// Most frames that wait before each direction of a cable.
    #[serde(default = "queue_frames")]
    pub queue_frames: usize,
}

/// Settings of an 802.11 medium.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WifiConfig {
    /// Standard and data rate: `802.11b-11`, `802.11g-6` to `802.11g-54`, `802.11n-6.5` to `802.11n-65`.
    pub phy: String,
    /// Rate of ACK, block ACK, RTS and CTS, in Mb/s; None: the highest basic rate that is no higher than the data rate.
    #[serde(default)]
    pub ack_rate_mbit: Option<f64>,
    /// Frames of at least this many bytes (MAC header and check sequence included) are announced by RTS and CTS; None: no frame.
    #[serde(default)]
    pub rts_threshold_bytes: Option<usize>,
    /// Most frames in one A-MPDU (802.11n only); 1: no aggregation.
    #[serde(default = "no_aggregate")]
    pub aggregate: usize,
    /// Attempts after which a frame is given up; None: never.
    #[serde(default = "retry_limit")]
    pub retry_limit: Option<u32>,
    /// Probability that a data frame arrives damaged though nothing collided.
    #[serde(default)]
    pub frame_error: f64,
    /// Pairs of ports, by name, that do not hear each other. The access point hears all, and is heard by all.
    #[serde(default)]
    pub hidden: Vec<(String, String)>,
    /// Access points on the channel, joined by a wire; stations associate with them in turn.
    #[serde(default = "one_access_point")]
    pub access_points: usize,
    /// Most frames that wait at a station, and at an access point.
    #[serde(default = "queue_frames")]
    pub queue_frames: usize,
}

/// A port as far as a medium needs to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its name, by which `hidden` means it.
    pub name: String,
    /// 802.11: hangs on the access point by a wire, takes no part in the medium.
    pub wired: bool,
}

/// Why no medium can be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// A kind that this program does not have.
    #[error("medium: this program has no kind {0:?}")]
    NotBuilt(&'static str),
    /// A dilation out of range.
    #[error("dilation: {0} is not from 0.01 to 1000")]
    Dilation(f64),
    /// A setting that cannot be: its name, and what is wrong and what is allowed.
    #[error("medium: {0}: {1}")]
    Setting(&'static str, String),
}

const fn queue_frames() -> usize {
    1000
}

const fn no_aggregate() -> usize {
    1
}

const fn one_access_point() -> usize {
    1
}

/// dot11ShortRetryLimit of IEEE 802.11.
#[allow(clippy::unnecessary_wraps)] // the default of an Option
const fn retry_limit() -> Option<u32> {
    Some(7)
}
