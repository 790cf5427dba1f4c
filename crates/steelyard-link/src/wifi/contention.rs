//! When a station may send: carrier sense, network allocation vector, back-off.
//!
//! IEEE 802.11-2016, 10.3.3 to 10.3.5. A station that has nothing drawn and finds the medium idle for DIFS sends at once; one that
//! finds it busy draws a back-off. After each transmission it draws one (post-back-off), whether or not more is to be sent.
//! The counter stands still while the medium is busy and goes on after it has been idle for DIFS, or for EIFS if what was heard
//! last could not be decoded.

use crate::random::Random;
use crate::wifi::phy::Timing;

/// Carrier sense and back-off of one station.
#[derive(Clone, Debug)]
pub struct Contention {
    timing: Timing,
    /// Transmissions that the station hears or sends at this moment.
    carrier: u32,
    /// When the last of them ended.
    carrier_end_ns: u64,
    /// Gap after that: DIFS or EIFS.
    gap_ns: u64,
    /// Until when the medium is taken, as frames said, or while an answer is sent or waited for.
    reserved_until_ns: u64,
    /// Width of the contention window.
    window: u32,
    /// Slots that are left to wait, as of when the medium became idle.
    slots: u32,
    /// Whether a back-off was drawn and neither used nor counted down.
    drawn: bool,
    /// When the frame to be sent next came to an idle station.
    ready_ns: u64,
}

impl Contention {
    /// A station at time 0, whose medium has been idle only from then on.
    pub const fn new(timing: Timing) -> Self {
        Self {
            timing,
            carrier: 0,
            carrier_end_ns: 0,
            gap_ns: timing.ifs_ns,
            reserved_until_ns: 0,
            window: timing.cw_min,
            slots: 0,
            drawn: false,
            ready_ns: 0,
        }
    }

    /// Whether no transmission is in the air here.
    pub const fn silent(&self) -> bool {
        self.carrier == 0
    }

    /// Whether the medium is taken by what frames said.
    pub const fn reserved(&self, now_ns: u64) -> bool {
        self.reserved_until_ns > now_ns
    }

    /// From when slots are counted, if nothing comes in between.
    fn count_from_ns(&self) -> u64 {
        (self.carrier_end_ns + self.gap_ns).max(self.reserved_until_ns + self.timing.ifs_ns)
    }

    /// When a frame that waits may be sent, if nothing comes in between; None while the medium is busy.
    pub fn access_ns(&self) -> Option<u64> {
        let counted_ns = self.count_from_ns() + u64::from(self.slots) * self.timing.slot_ns;
        self.silent().then(|| counted_ns.max(self.ready_ns))
    }

    /// No later than when a frame that waits may be sent, whatever comes in between. `first_end_ns`: the first end of any
    /// transmission, for a station that hears one now. EIFS may end early: what is decoded meanwhile puts DIFS in its place.
    pub fn earliest_access_ns(&self, first_end_ns: u64) -> u64 {
        let idle_ns = if self.silent() {
            self.carrier_end_ns
        } else {
            first_end_ns
        };
        let from_ns = idle_ns.max(self.reserved_until_ns) + self.timing.ifs_ns;
        (from_ns + u64::from(self.slots) * self.timing.slot_ns).max(self.ready_ns)
    }

    /// A frame has come to a station that had nothing to send.
    pub fn ready(&mut self, now_ns: u64, random: &mut Random) {
        self.ready_ns = now_ns;
        let busy = !self.silent() || self.reserved(now_ns);
        if !self.drawn && busy {
            self.draw(random);
        }
    }

    /// A transmission begins that the station hears. `waiting`: it has a frame to send, and does not do so at this instant.
    pub fn heard_begin(&mut self, now_ns: u64, waiting: bool, random: &mut Random) {
        if self.silent() {
            let from_ns = self.count_from_ns();
            if now_ns >= from_ns {
                let counted = (now_ns - from_ns) / self.timing.slot_ns;
                let left = u64::from(self.slots).saturating_sub(counted);
                self.slots = u32::try_from(left).unwrap_or(u32::MAX);
                // Counted down with nothing to send; with something to send it would be sending now.
                self.drawn = left > 0;
            }
            if waiting && !self.drawn {
                self.draw(random);
            }
        }
        self.carrier += 1;
    }

    /// A transmission ends that the station heard, or sent. Count from here after DIFS, or, if `undecoded`, after that gap (EIFS).
    pub fn heard_end(&mut self, now_ns: u64, undecoded: Option<u64>) {
        self.carrier -= 1;
        self.carrier_end_ns = now_ns;
        self.gap_ns = undecoded.unwrap_or(self.timing.ifs_ns);
    }

    /// What ended at this moment was decoded as a signal, but its frames were damaged: count after EIFS.
    pub const fn damaged(&mut self, eifs_ns: u64) {
        self.gap_ns = eifs_ns;
    }

    /// The station begins to send what it contended for (`contended`) or an answer.
    pub const fn send_begin(&mut self, contended: bool) {
        self.carrier += 1;
        if contended {
            self.slots = 0;
            self.drawn = false;
        }
    }

    /// The medium is taken until then.
    pub fn reserve(&mut self, until_ns: u64) {
        self.reserved_until_ns = self.reserved_until_ns.max(until_ns);
    }

    /// The frame was received, needed no answer, or was given up: first window.
    pub fn succeeded(&mut self, random: &mut Random) {
        self.window = self.timing.cw_min;
        self.draw(random);
    }

    /// No answer came: the window is doubled.
    pub fn failed(&mut self, random: &mut Random) {
        self.window = (2 * self.window + 1).min(self.timing.cw_max);
        self.draw(random);
    }

    const fn draw(&mut self, random: &mut Random) {
        self.slots = random.up_to(self.window);
        self.drawn = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wifi::phy::Standard;

    const IFS: u64 = 28_000;
    const SLOT: u64 = 9_000;

    fn station() -> (Contention, Random) {
        (Contention::new(Standard::G.timing()), Random::new(1))
    }

    #[test]
    fn an_idle_medium_is_taken_at_once_and_a_young_one_after_difs() {
        let (mut station, mut random) = station();
        station.ready(10_000, &mut random);
        assert_eq!(station.access_ns(), Some(IFS));
        station.ready(1_000_000, &mut random);
        assert_eq!(station.access_ns(), Some(1_000_000));
    }

    #[test]
    fn a_busy_medium_means_a_draw_that_stands_still_while_it_is_busy() {
        let (mut station, mut random) = station();
        station.heard_begin(100_000, false, &mut random);
        station.ready(150_000, &mut random);
        assert_eq!(station.access_ns(), None);
        station.slots = 5;
        station.heard_end(200_000, None);
        assert_eq!(station.access_ns(), Some(200_000 + IFS + 5 * SLOT));
        // Three whole slots and a part of the fourth.
        station.heard_begin(200_000 + IFS + 3 * SLOT + 10, true, &mut random);
        station.heard_end(300_000, Some(60_000));
        assert_eq!(station.access_ns(), Some(360_000 + 2 * SLOT));
    }

    #[test]
    fn a_medium_that_turns_busy_before_difs_is_over_means_a_draw() {
        let (mut station, mut random) = station();
        station.ready(10_000, &mut random);
        station.heard_begin(20_000, true, &mut random);
        assert!(station.drawn);
    }

    #[test]
    fn a_back_off_without_a_frame_counts_down_and_is_over() {
        let (mut station, mut random) = station();
        station.slots = 4;
        station.drawn = true;
        let mut early = station.clone();
        early.ready(IFS + SLOT, &mut random);
        assert_eq!(early.access_ns(), Some(IFS + 4 * SLOT));
        station.heard_begin(IFS + 9 * SLOT, false, &mut random);
        assert!(!station.drawn);
        assert_eq!(station.slots, 0);
    }

    #[test]
    fn windows_double_up_to_the_widest_and_fall_back() {
        let (mut station, mut random) = station();
        let widths: Vec<u32> = (0..8)
            .map(|_| {
                station.failed(&mut random);
                station.window
            })
            .collect();
        assert_eq!(widths, [31, 63, 127, 255, 511, 1023, 1023, 1023]);
        station.succeeded(&mut random);
        assert_eq!(station.window, 15);
    }

    #[test]
    fn what_frames_reserve_counts_as_busy() {
        let (mut station, mut random) = station();
        station.reserve(500_000);
        station.ready(400_000, &mut random);
        assert!(station.drawn);
        station.slots = 0;
        assert_eq!(station.access_ns(), Some(500_000 + IFS));
    }
}
