//! YCSB's key choosers: which existing key a request asks for.

use steelyard_wire::{RequestDistribution, Ycsb};

use crate::OrderError;
use crate::random::{Random, unit};
use crate::ycsb_distributions::{Exponential, Hotspot, Latest, ScrambledZipfian, uniform};

/// Draws after which a key that exists is taken uniformly. YCSB would draw forever; this is reached only if almost the whole key
/// space is still to be inserted.
pub const MAX_DRAWS: u64 = 10_000;

/// What a chooser needs to know of the keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeySpace {
    pub distribution: RequestDistribution,
    pub first: u64,
    pub records: u64,
    pub expected_new_keys: u64,
    pub hotspot_data_fraction: f64,
    pub hotspot_operation_fraction: f64,
    pub exponential_percentile: f64,
    pub exponential_fraction: f64,
}

impl KeySpace {
    pub fn of(workload: &Ycsb) -> Self {
        Self {
            distribution: workload.request_distribution,
            first: workload.insert_start,
            records: workload.records,
            expected_new_keys: workload.expected_new_keys.unwrap_or(0),
            hotspot_data_fraction: workload.hotspot_data_fraction,
            hotspot_operation_fraction: workload.hotspot_operation_fraction,
            exponential_percentile: workload.exponential_percentile,
            exponential_fraction: workload.exponential_fraction,
        }
    }

    /// Keys from 0 with the numbers that YCSB's workloads have by default.
    pub fn with_defaults(distribution: RequestDistribution, records: u64, expected_new_keys: u64) -> Self {
        Self {
            distribution,
            first: 0,
            records,
            expected_new_keys,
            hotspot_data_fraction: 0.2,
            hotspot_operation_fraction: 0.8,
            exponential_percentile: 95.0,
            exponential_fraction: 0.857_142_857_1,
        }
    }
}

/// YCSB's key choosers for requests.
#[derive(Clone, Debug)]
pub(crate) enum KeyChooser {
    Uniform { count: u64 },
    Zipfian(ScrambledZipfian),
    Latest(Latest),
    Hotspot(Hotspot),
    Sequential { count: u64 },
    Exponential(Exponential),
}

impl KeyChooser {
    /// The chooser of a workload. Errors: a distribution that needs more records than there are.
    pub fn new(keys: &KeySpace) -> Result<Self, OrderError> {
        let KeySpace { first, records, .. } = *keys;
        Ok(match keys.distribution {
            RequestDistribution::Uniform => Self::Uniform { count: records },
            RequestDistribution::Sequential => Self::Sequential { count: records },
            RequestDistribution::Zipfian => {
                // YCSB's upper bound is inclusive, so its key space is one larger than the keys that it expects.
                let keys = records + keys.expected_new_keys + 1;
                Self::Zipfian(ScrambledZipfian::new(first, keys))
            }
            RequestDistribution::Latest => {
                let newest = first + records - 1;
                if newest == 0 {
                    return Err(OrderError::new(
                        "work.records",
                        records,
                        "at least 2 for the distribution latest",
                    ));
                }
                Self::Latest(Latest::new(newest))
            }
            RequestDistribution::Hotspot => Self::Hotspot(hotspot(keys)?),
            RequestDistribution::Exponential => {
                let range = (first + records) as f64 * keys.exponential_fraction;
                Self::Exponential(Exponential::new(keys.exponential_percentile, range))
            }
        })
    }

    /// A key that exists, as YCSB's nextKeynum: draws until there is one.
    #[inline]
    pub fn existing(&mut self, random: Random, first: u64, newest: u64, requests: u64) -> u64 {
        for draw in 0..MAX_DRAWS {
            let bits = [random.bits(2 * draw), random.bits(2 * draw + 1)];
            let key = self.key(bits, first, newest, requests);
            if let Some(key) = key.filter(|key| (first..=newest).contains(key)) {
                return key;
            }
        }
        uniform(random.bits(2 * MAX_DRAWS), first, newest - first + 1)
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

fn hotspot(keys: &KeySpace) -> Result<Hotspot, OrderError> {
    let chooser = Hotspot::new(
        keys.first,
        keys.records,
        keys.hotspot_data_fraction,
        keys.hotspot_operation_fraction,
    );
    let (hot, cold) = chooser.sizes();
    if (hot == 0 && keys.hotspot_operation_fraction > 0.0) || (cold == 0 && keys.hotspot_operation_fraction < 1.0) {
        return Err(OrderError::new(
            "work.hotspot_data_fraction",
            keys.hotspot_data_fraction,
            "a fraction that leaves at least one record in each part that operations use",
        ));
    }
    Ok(chooser)
}
