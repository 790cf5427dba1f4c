//! Requests for documents: each operation gets one of them over HTTP.

use serde::{Deserialize, Serialize};

/// Documents that are requested with their shares, drawn for each operation by its index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requests {
    /// What is requested.
    pub documents: Vec<Document>,
    /// Share of the answers whose bodies are compared byte by byte; status and length are checked in all of them.
    #[serde(default = "whole", skip_serializing_if = "is_whole")]
    pub validate_fraction: f64,
}

/// A document: the letters from a to z again and again, cut at its length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// Where it is on every node, from the slash on.
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// Its share of the requests; shares are divided by their sum.
    #[serde(default = "whole", skip_serializing_if = "is_whole")]
    pub share: f64,
}

fn whole() -> f64 {
    1.0
}

// serde hands references to these.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_whole(share: &f64) -> bool {
    *share == 1.0
}
