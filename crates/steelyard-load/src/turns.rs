//! Turns: which of several nodes an operation goes to.

use std::iter;

/// The numbers below `count`: that whose turn it is, then all others, beginning with another one each time it comes round. So
/// the others share evenly what one of them cannot take.
#[inline]
pub fn turns(count: usize, turn: usize) -> impl Iterator<Item = usize> {
    let (own, round, others) = (turn % count, turn / count, count - 1);
    iter::once(own).chain((0..others).map(move |step| (own + 1 + (round + step) % others) % count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_others_share_evenly_what_one_cannot_take() {
        let mut counts = [0; 4];
        for turn in 0..240 {
            counts[turns(4, turn).find(|number| *number != 1).unwrap()] += 1;
        }
        assert_eq!(counts, [80, 0, 80, 80]);
        assert!(turns(1, 7).eq([0]));
    }
}
