//! Words: what the conductor says to a running `load` on its standard input, one JSON object a line.

use serde::{Deserialize, Serialize};

use crate::schedule::Schedule;

/// One line of input of an order with `words`. `go` comes first, `stop` last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "word", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Word {
    /// Begin: the order's warm-up, if it has one, starts this many seconds after the word is read.
    Go {
        /// Seconds, so that several processes, which read it at almost the same time, start together.
        #[serde(default)]
        in_s: f64,
    },
    /// Carry out one more phase, after those that were asked for before it. All answers of the phase before are awaited first.
    Phase {
        /// Its name in records; each name once, not `populate`, `warm-up` or `search-settle`.
        name: String,
        /// When its operations are due. It may have as many in flight as the order's schedule.
        schedule: Schedule,
        /// Seconds.
        duration_s: f64,
        /// Seconds of the same schedule right before it, recorded as phase `search-settle`.
        #[serde(default)]
        settle_s: f64,
        /// Seconds from reading the word, or from the end of the phase before if that is later, to its start.
        #[serde(default)]
        in_s: f64,
    },
    /// End the load at once, also within a phase.
    Stop {},
}
