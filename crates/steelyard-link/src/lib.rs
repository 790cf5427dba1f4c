//! Links between nodes, in user space: what a frame meets between two network interfaces.
//!
//! A [`Medium`] is a pure state machine on a virtual clock in nanoseconds: it is offered frames, says when its next event is due,
//! and hands over what arrives. It reads no clock and opens no device, so a simulation and [`Live`] drive the same code,
//! the one as fast as it computes, the other by the monotonic clock. All randomness comes from a seed.

#![deny(missing_docs)]
#![deny(unsafe_code)] // but for the system calls that need it

mod config;
mod dilated;
mod frames;
mod late;
mod medium;
mod point;
mod priority;
mod random;
mod run;
mod simulate;
mod tap;
mod wifi;

pub use config::{ConfigError, Duplex, MediumConfig, PointConfig, Port, WifiConfig};
pub use dilated::Dilated;
pub use late::{Late, Lateness};
pub use medium::{Counters, Delivery, Frame, Loss, Medium};
pub use point::PointToPoint;
pub use priority::{Scheduling, real_time};
pub use run::{LinkError, Live, Report};
pub use simulate::{Outcome, Scenario, Traffic, simulate};
pub use tap::{Mac, Tap, TapConfig, TapError, parse_address, parse_mac};
use wifi::Wifi;

/// The medium of a configuration, between `ports`, which frames name by their place in the list.
///
/// With a `dilation` of k, rates are divided by k, delays and slots multiplied by k: the medium lives on a clock that runs k times
/// slower than the caller's.
pub fn build(config: &MediumConfig, ports: &[Port], dilation: f64, seed: u64) -> Result<Box<dyn Medium>, ConfigError> {
    let medium: Box<dyn Medium> = match config {
        MediumConfig::PointToPoint(config) => Box::new(PointToPoint::new(config, ports.len(), seed)?),
        MediumConfig::Wifi(wifi) => Box::new(Wifi::new(wifi, ports, |_| None, seed)?),
    };
    Dilated::around(medium, dilation)
}
