//! `link --simulate`: an 802.11 medium without packets, faster than real time.

use std::error::Error;
use std::io::{self, Write};
use std::time::Instant;

use serde::Serialize;
use steelyard_link::{Outcome, Scenario, Traffic, WifiConfig, simulate};

use crate::exit::{Exit, REFUSED};

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum TrafficArgument {
    /// From the stations to a port that hangs on the access point by a wire.
    Uplink,
    /// From that port to the stations.
    Downlink,
    /// From each station to the next, through the access point.
    Relay,
}

#[derive(clap::Args)]
#[command(next_help_heading = "With --simulate")]
pub struct Arguments {
    /// Standard and data rate: 802.11b-11, 802.11g-6 to 802.11g-54, 802.11n-6.5 to 802.11n-65.
    #[arg(long, default_value = "802.11g-54")]
    phy: String,
    /// Stations, beside the access point.
    #[arg(long, default_value_t = 5, value_name = "N")]
    stations: usize,
    /// How many of them have the lowest rate of the standard.
    #[arg(long, default_value_t = 0, value_name = "N")]
    slow: usize,
    /// Access points on the same channel, joined by a wire; stations associate with them in turn.
    #[arg(long, default_value_t = 1, value_name = "N")]
    access_points: usize,
    /// Stations of even and of odd number do not hear each other.
    #[arg(long)]
    hidden: bool,
    /// Virtual seconds.
    #[arg(long, default_value_t = 10.0, value_name = "S")]
    seconds: f64,
    /// Seed of all randomness.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Ethernet payload of every frame.
    #[arg(long, default_value_t = 1500, value_name = "BYTES")]
    payload: usize,
    /// Where frames go.
    #[arg(long, value_enum, default_value_t = TrafficArgument::Uplink)]
    traffic: TrafficArgument,
    /// Poisson arrivals, all together this fraction of what one station alone can send. Without it the sources are saturated.
    #[arg(long, value_name = "FRACTION")]
    load: Option<f64>,
    /// Most frames of an A-MPDU (802.11n); 1: no aggregation.
    #[arg(long, default_value_t = 1, value_name = "K")]
    aggregate: usize,
    /// Announce transmissions of at least this many bytes by RTS and CTS; without a number, all of them.
    #[arg(long, value_name = "BYTES", num_args = 0..=1, default_missing_value = "0")]
    rts: Option<usize>,
    /// Rate of ACK, block ACK, RTS and CTS; default: the highest basic rate that is no higher than the data rate.
    #[arg(long, value_name = "MBIT")]
    ack_rate: Option<f64>,
    /// Attempts after which a frame is given up, or off.
    #[arg(long, default_value = "7", value_name = "off|N", value_parser = parse_retry_limit)]
    retry_limit: RetryLimit,
    /// Probability that a frame is damaged though nothing collided.
    #[arg(long, default_value_t = 0.0, value_name = "PROBABILITY")]
    frame_error: f64,
    /// Most frames that wait at a station, and at the access point.
    #[arg(long, default_value_t = 1000, value_name = "N")]
    queue_frames: usize,
    /// Print one line of JSON, the same for the same arguments.
    #[arg(long)]
    json: bool,
}

/// A type of its own, since clap takes an `Option` for an argument that may be absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RetryLimit(Option<u32>);

/// What was simulated, and what came of it.
#[derive(Serialize)]
struct Line<'a> {
    phy: &'a str,
    stations: usize,
    slow: usize,
    access_points: usize,
    hidden: bool,
    seconds: f64,
    seed: u64,
    payload_bytes: usize,
    traffic: Traffic,
    load: Option<f64>,
    aggregate: usize,
    rts_threshold_bytes: Option<usize>,
    retry_limit: Option<u32>,
    frame_error: f64,
    queue_frames: usize,
    #[serde(flatten)]
    outcome: &'a Outcome,
}

pub fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let scenario = scenario(arguments);
    let begun = Instant::now();
    let outcome = simulate(&scenario).map_err(|error| Exit::boxed(REFUSED, format!("link: {error}")))?;
    let speed = scenario.seconds / begun.elapsed().as_secs_f64();
    let text = if arguments.json {
        serde_json::to_string(&line(&scenario, &outcome))?
    } else {
        words(&scenario, &outcome, speed)
    };
    // The line may go unread.
    let _ = writeln!(io::stdout(), "{text}");
    Ok(())
}

fn scenario(arguments: &Arguments) -> Scenario {
    Scenario {
        medium: WifiConfig {
            phy: arguments.phy.clone(),
            ack_rate_mbit: arguments.ack_rate,
            rts_threshold_bytes: arguments.rts,
            aggregate: arguments.aggregate,
            retry_limit: arguments.retry_limit.0,
            frame_error: arguments.frame_error,
            hidden: Vec::new(),
            access_points: arguments.access_points,
            queue_frames: arguments.queue_frames,
        },
        stations: arguments.stations,
        slow: arguments.slow,
        hidden: arguments.hidden,
        seconds: arguments.seconds,
        payload_bytes: arguments.payload,
        traffic: match arguments.traffic {
            TrafficArgument::Uplink => Traffic::Uplink,
            TrafficArgument::Downlink => Traffic::Downlink,
            TrafficArgument::Relay => Traffic::Relay,
        },
        load: arguments.load,
        seed: arguments.seed,
    }
}

fn line<'a>(scenario: &'a Scenario, outcome: &'a Outcome) -> Line<'a> {
    Line {
        phy: &scenario.medium.phy,
        stations: scenario.stations,
        slow: scenario.slow,
        access_points: scenario.medium.access_points,
        hidden: scenario.hidden,
        seconds: scenario.seconds,
        seed: scenario.seed,
        payload_bytes: scenario.payload_bytes,
        traffic: scenario.traffic,
        load: scenario.load,
        aggregate: scenario.medium.aggregate,
        rts_threshold_bytes: scenario.medium.rts_threshold_bytes,
        retry_limit: scenario.medium.retry_limit,
        frame_error: scenario.medium.frame_error,
        queue_frames: scenario.medium.queue_frames,
        outcome,
    }
}

fn words(scenario: &Scenario, outcome: &Outcome, speed: f64) -> String {
    let counters = &outcome.counters;
    let delays = outcome.delay_ms.map_or_else(String::new, |delay| {
        format!(
            "delay: mean {:.3} ms, median {:.3} ms, 99th percentile {:.3} ms\n",
            delay.mean, delay.p50, delay.p99
        )
    });
    format!(
        "{}, {} stations, {} s simulated, {speed:.0} times as fast as real time\n\
         throughput: {:.2} Mb/s of {}-byte payloads; Jain's index of the stations {:.4}\n\
         attempts: {}, of which {} retries; {} collided ({:.1}%)\n\
         frames: {} delivered, {} dropped at a full queue, {} given up\n\
         {delays}medium busy: {:.1}% of the time",
        scenario.medium.phy,
        scenario.stations,
        scenario.seconds,
        outcome.throughput_mbit_per_s,
        scenario.payload_bytes,
        outcome.jain_index,
        counters.attempts,
        counters.retries,
        counters.collisions,
        100.0 * outcome.collision_fraction,
        counters.delivered,
        counters.queue_drops,
        counters.lost,
        100.0 * outcome.busy_fraction,
    )
}

fn parse_retry_limit(text: &str) -> Result<RetryLimit, String> {
    if text == "off" {
        return Ok(RetryLimit(None));
    }
    match text.parse() {
        Ok(attempts) if attempts > 0 => Ok(RetryLimit(Some(attempts))),
        _ => Err(format!("{text:?} is neither off nor a number of attempts from 1")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_limit_is_a_number_or_off() {
        assert_eq!(parse_retry_limit("off"), Ok(RetryLimit(None)));
        assert_eq!(parse_retry_limit("7"), Ok(RetryLimit(Some(7))));
        for wrong in ["0", "-1", "none", ""] {
            assert!(parse_retry_limit(wrong).is_err(), "{wrong}");
        }
    }
}
