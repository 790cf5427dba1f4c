//! The bytes of frames while a medium has them: a fixed number of places that are used again.

/// Most frames that are kept at once; more are dropped, as by a full queue.
const MOST_FRAMES: usize = 100_000;

#[derive(Debug)]
struct Place {
    bytes: Box<[u8]>,
    length: usize,
    /// Receivers that this frame has not reached yet; 0: the place is free.
    owed: usize,
    /// How many frames had this place: part of the id, so that nobody is given a later one.
    kept: u32,
}

/// Low bits of an id, which say the place.
const PLACE_BITS: u32 = 32;

/// Frames by id.
#[derive(Debug)]
pub struct Frames {
    frame_bytes: usize,
    places: Vec<Place>,
    free: Vec<usize>,
    owed: u64,
}

impl Frames {
    /// Room for frames of at most so many bytes.
    pub fn new(frame_bytes: usize) -> Self {
        Self {
            frame_bytes,
            places: Vec::new(),
            free: Vec::new(),
            owed: 0,
        }
    }

    /// Receivers that are still to be reached, of all frames together.
    pub fn owed(&self) -> u64 {
        self.owed
    }

    /// Takes a place into which a frame can be read; `None` where all are taken. To be kept or given back.
    pub fn take(&mut self) -> Option<usize> {
        if let Some(free) = self.free.pop() {
            return Some(free);
        }
        let place = self.places.len();
        if place == MOST_FRAMES {
            return None;
        }
        self.places.push(Place {
            bytes: vec![0; self.frame_bytes].into_boxed_slice(),
            length: 0,
            owed: 0,
            kept: 0,
        });
        Some(place)
    }

    /// The bytes of a place that was taken, to read into.
    pub fn buffer(&mut self, place: usize) -> &mut [u8] {
        &mut self.places[place].bytes
    }

    /// Makes a place that was taken free again.
    pub fn give_back(&mut self, place: usize) {
        self.free.push(place);
    }

    /// Keeps what is in a place that was taken until so many receivers (at least one) have it. Returns its id.
    pub fn keep(&mut self, place: usize, length: usize, receivers: usize) -> u64 {
        debug_assert!(receivers > 0, "nobody would ever settle it");
        let kept = &mut self.places[place];
        kept.length = length;
        kept.owed = receivers;
        kept.kept = kept.kept.wrapping_add(1);
        self.owed += receivers as u64;
        u64::from(kept.kept) << PLACE_BITS | place as u64
    }

    /// A kept frame; `None` if it has reached all its receivers already.
    pub fn get(&self, id: u64) -> Option<&[u8]> {
        let place = &self.places[self.place(id)?];
        Some(&place.bytes[..place.length])
    }

    /// One receiver has the frame, or will never have it.
    pub fn settle(&mut self, id: u64) {
        let Some(index) = self.place(id) else { return };
        let place = &mut self.places[index];
        place.owed -= 1;
        self.owed -= 1;
        if place.owed == 0 {
            self.free.push(index);
        }
    }

    /// The place of a frame that is still kept.
    fn place(&self, id: u64) -> Option<usize> {
        let index = usize::try_from(id & ((1 << PLACE_BITS) - 1)).ok()?;
        let place = self.places.get(index)?;
        (place.owed > 0 && u64::from(place.kept) == id >> PLACE_BITS).then_some(index)
    }

    /// Forgets every frame; how many receivers were still to be reached.
    pub fn clear(&mut self) -> u64 {
        for (index, place) in self.places.iter_mut().enumerate().filter(|(_, place)| place.owed > 0) {
            place.owed = 0;
            self.free.push(index);
        }
        std::mem::take(&mut self.owed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(frames: &mut Frames, content: &[u8], receivers: usize) -> u64 {
        let place = frames.take().unwrap();
        frames.buffer(place)[..content.len()].copy_from_slice(content);
        frames.keep(place, content.len(), receivers)
    }

    #[test]
    fn a_frame_is_kept_until_every_receiver_has_it() {
        let mut frames = Frames::new(8);
        let broadcast = put(&mut frames, b"all", 2);
        let unicast = put(&mut frames, b"you", 1);
        assert_eq!(frames.owed(), 3);
        frames.settle(broadcast);
        assert_eq!(frames.get(broadcast), Some(&b"all"[..]));
        frames.settle(broadcast);
        assert_eq!(frames.get(broadcast), None);
        let later = put(&mut frames, b"new", 1);
        assert_eq!(frames.places.len(), 2, "places are used again");
        frames.settle(broadcast);
        assert_eq!(frames.get(broadcast), None, "and ids are not");
        assert_eq!(frames.get(later), Some(&b"new"[..]));
        assert_eq!(frames.clear(), 2);
        assert_eq!((frames.get(unicast), frames.owed()), (None, 0));
    }

    #[test]
    fn there_is_a_limit() {
        let mut frames = Frames::new(1);
        let ids: Vec<u64> = (0..MOST_FRAMES).map(|_| put(&mut frames, b"x", 1)).collect();
        assert_eq!(frames.take(), None);
        frames.settle(ids[7]);
        assert_eq!(frames.take(), Some(7));
        frames.give_back(7);
        assert_eq!(frames.take(), Some(7));
    }
}
