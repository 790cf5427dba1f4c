//! Requests for documents as pure functions: which document operation i of a seed gets, and what its bytes are.

use steelyard_wire::{Requests, Share};

use crate::OrderError;
use crate::operation::{Kinds, MOST_SHARES, Operation};
use crate::random::{Purpose, Random};
use crate::shares::Shares;

/// The letters of which every document consists.
const LETTERS: &[u8; 26] = b"abcdefghijklmnopqrstuvwxyz";
/// Most documents of an order, and most bytes of one: more is a mistake.
const MOST_DOCUMENTS: usize = 100_000;
const MOST_BYTES: u64 = 1 << 40;

/// The one kind of operation.
pub fn kinds() -> Kinds {
    let mut kinds = Kinds::default();
    kinds.add("get", &[], false);
    kinds
}

/// The first bytes of every document: the letters again and again.
pub fn letters(bytes: usize) -> Vec<u8> {
    LETTERS.iter().copied().cycle().take(bytes).collect()
}

/// The operations of one share, in index order. An operation's key is the number of its document.
#[derive(Clone, Debug)]
pub struct Stream {
    share: Share,
    next_index: u64,
    shares: Shares,
    random: Random,
}

impl Stream {
    /// The operations of `share` from `first_index` on. Errors: documents that are not possible.
    pub fn new(requests: &Requests, seed: u64, share: Share, first_index: u64) -> Result<Self, OrderError> {
        check(requests)?;
        if share.of == 0 || share.of > MOST_SHARES || share.index >= share.of {
            let read = format!("{} of {}", share.index, share.of);
            return Err(OrderError::new(
                "share",
                read,
                "an index below of, and of up to a million",
            ));
        }
        let shares: Vec<f64> = requests.documents.iter().map(|document| document.share).collect();
        let behind = first_index % share.of;
        Ok(Self {
            share,
            next_index: first_index + (share.index + share.of - behind) % share.of,
            shares: Shares::new(&shares, "work.documents.share")?,
            random: Random::new(seed, Purpose::Key),
        })
    }

    /// The next operation of this share.
    #[allow(clippy::should_implement_trait)] // An Iterator would wrap every operation in an Option that is never None.
    #[inline]
    pub fn next(&mut self) -> Operation {
        let index = self.next_index;
        self.next_index += self.share.of;
        Operation {
            index,
            key: self.shares.at(self.random.at(index).unit(0)) as u64,
            ..Operation::default()
        }
    }
}

fn check(requests: &Requests) -> Result<(), OrderError> {
    let count = requests.documents.len();
    if !(1..=MOST_DOCUMENTS).contains(&count) {
        return Err(OrderError::new("work.documents", count, "1 to 100000 documents"));
    }
    for document in &requests.documents {
        let path = &document.path;
        if !path.starts_with('/') || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            let allowed = "a path that begins with a slash, of printable ASCII without spaces";
            return Err(OrderError::new("work.documents.path", format!("{path:?}"), allowed));
        }
        if document.bytes > MOST_BYTES {
            return Err(OrderError::new("work.documents.bytes", document.bytes, "up to 2^40"));
        }
    }
    let fraction = requests.validate_fraction;
    if !(0.0..=1.0).contains(&fraction) {
        return Err(OrderError::new("work.validate_fraction", fraction, "0 to 1"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use steelyard_wire::Document;

    fn requests(shares: &[f64]) -> Requests {
        let document = |share: &f64| Document {
            path: "/a".to_owned(),
            bytes: 3,
            share: *share,
        };
        Requests {
            documents: shares.iter().map(document).collect(),
            validate_fraction: 1.0,
        }
    }

    #[test]
    fn documents_have_their_shares_whoever_draws_them() {
        let requests = requests(&[3.0, 0.0, 1.0]);
        let mut whole = Stream::new(&requests, 7, Share::default(), 0).unwrap();
        let all: Vec<Operation> = (0..40_000).map(|_| whole.next()).collect();
        let count = |key| all.iter().filter(|operation| operation.key == key).count();
        assert!(count(0).abs_diff(30_000) < 400, "{}", count(0));
        assert_eq!((count(1), count(0) + count(2)), (0, 40_000));
        let mut part = Stream::new(&requests, 7, Share { index: 1, of: 3 }, 100).unwrap();
        for operation in all[100..].iter().filter(|operation| operation.index % 3 == 1).take(100) {
            assert_eq!(part.next(), *operation);
        }
    }

    #[test]
    fn documents_are_letters() {
        assert_eq!(letters(28), b"abcdefghijklmnopqrstuvwxyzab");
    }

    #[test]
    fn what_is_no_document_is_refused_in_words() {
        let refused = |change: &dyn Fn(&mut Requests)| {
            let mut requests = requests(&[1.0]);
            change(&mut requests);
            Stream::new(&requests, 1, Share::default(), 0).unwrap_err().to_string()
        };
        assert!(refused(&|requests| requests.documents.clear()).starts_with("work.documents: read 0"));
        for path in ["a", "", "/a b", "/a\r\nX: y", "/\u{e4}"] {
            let message = refused(&|requests| requests.documents[0].path = path.to_owned());
            assert!(message.starts_with("work.documents.path: read "), "{message}");
        }
        assert!(refused(&|requests| requests.documents[0].share = 0.0).starts_with("work.documents.share: read [0.0]"));
        assert!(refused(&|requests| requests.documents[0].bytes = u64::MAX).contains("up to 2^40"));
        assert!(refused(&|requests| requests.validate_fraction = 1.5).contains("0 to 1"));
        let share = Share { index: 2, of: 2 };
        let message = Stream::new(&super::tests::requests(&[1.0]), 1, share, 0)
            .unwrap_err()
            .to_string();
        assert!(message.starts_with("share: read 2 of 2"), "{message}");
    }
}
