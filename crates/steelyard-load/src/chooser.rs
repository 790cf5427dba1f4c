//! YCSB's choosers of the keys that requests ask for.

use steelyard_wire::{RequestDistribution, Workload};

use crate::distribution::{Exponential, Hotspot, Latest, ScrambledZipfian, uniform};
use crate::random::unit;
use crate::ycsb::LoadError;

/// YCSB's key choosers for requests.
#[derive(Clone, Debug)]
pub(crate) enum Chooser {
    Uniform { count: u64 },
    Zipfian(ScrambledZipfian),
    Latest(Latest),
    Hotspot(Hotspot),
    Sequential { count: u64 },
    Exponential(Exponential),
}

impl Chooser {
    /// The chooser of a workload. Errors: a distribution that needs more records than there are.
    pub fn new(workload: &Workload) -> Result<Self, LoadError> {
        let Workload {
            insert_start, records, ..
        } = *workload;
        Ok(match workload.request_distribution {
            RequestDistribution::Uniform => Self::Uniform { count: records },
            RequestDistribution::Sequential => Self::Sequential { count: records },
            RequestDistribution::Zipfian => {
                // YCSB's upper bound is inclusive, so its key space is one larger than the keys that it expects.
                let keys = records + workload.expected_new_keys.unwrap_or(0) + 1;
                Self::Zipfian(ScrambledZipfian::new(insert_start, keys))
            }
            RequestDistribution::Latest => {
                let newest = insert_start + records - 1;
                if newest == 0 {
                    return Err(LoadError::new(
                        "workload.records",
                        records,
                        "2 and more with the distribution latest",
                    ));
                }
                Self::Latest(Latest::new(newest))
            }
            RequestDistribution::Hotspot => Self::Hotspot(hotspot(workload)?),
            RequestDistribution::Exponential => {
                let range = (insert_start + records) as f64 * workload.exponential_fraction;
                Self::Exponential(Exponential::new(workload.exponential_percentile, range))
            }
        })
    }

    /// A key from 128 random bits, the first key, the newest, and the number of requests before; None if it lies below zero.
    pub fn key(&mut self, bits: [u64; 2], first: u64, newest: u64, requests: u64) -> Option<u64> {
        let [bits, more_bits] = bits;
        match self {
            Self::Uniform { count } => Some(uniform(bits, first, *count)),
            Self::Sequential { count } => Some(first + requests % *count),
            Self::Zipfian(scrambled) => Some(scrambled.value(unit(bits))),
            Self::Latest(latest) => Some(latest.value(unit(bits), newest)),
            Self::Hotspot(hotspot) => Some(hotspot.value(unit(bits), more_bits)),
            Self::Exponential(exponential) => newest.checked_sub(exponential.value(1.0 - unit(bits)) as u64),
        }
    }
}

fn hotspot(workload: &Workload) -> Result<Hotspot, LoadError> {
    let made = Hotspot::new(
        workload.insert_start,
        workload.records,
        workload.hotspot_data_fraction,
        workload.hotspot_operation_fraction,
    );
    let (hot, cold) = made.sizes();
    if (hot == 0 && workload.hotspot_operation_fraction > 0.0)
        || (cold == 0 && workload.hotspot_operation_fraction < 1.0)
    {
        return Err(LoadError::new(
            "workload.hotspot_data_fraction",
            workload.hotspot_data_fraction,
            "a fraction of the records that leaves at least one on each side that operations go to",
        ));
    }
    Ok(made)
}
