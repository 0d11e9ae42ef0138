//! Things in the order in which they came, linked through the things themselves: joining, leaving and looking at the oldest cost
//! a few instructions and no memory.
//!
//! Since a timeout is the same for all, what has waited longest is also the first to run out of time, and no timer is needed for
//! each request.

/// No place: the end of a list.
const NONE: u32 = u32::MAX;

/// The places before and after a thing in its list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Links {
    next: u32,
    previous: u32,
}

impl Default for Links {
    fn default() -> Self {
        Self {
            next: NONE,
            previous: NONE,
        }
    }
}

/// What can be in a list, one at a time.
pub(crate) trait Linked {
    fn links(&mut self) -> &mut Links;
}

/// Places of things, by when they came.
#[derive(Debug)]
pub(crate) struct Fifo {
    first: u32,
    last: u32,
    length: u32,
}

impl Fifo {
    pub(crate) fn new() -> Self {
        Self {
            first: NONE,
            last: NONE,
            length: 0,
        }
    }

    pub(crate) fn len(&self) -> u64 {
        u64::from(self.length)
    }

    /// What has been here longest.
    #[inline]
    pub(crate) fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    #[inline]
    pub(crate) fn push(&mut self, things: &mut [impl Linked], place: u32) {
        *things[place as usize].links() = Links {
            next: NONE,
            previous: self.last,
        };
        match self.last {
            NONE => self.first = place,
            last => things[last as usize].links().next = place,
        }
        self.last = place;
        self.length += 1;
    }

    /// Takes out what is in this list.
    #[inline]
    pub(crate) fn remove(&mut self, things: &mut [impl Linked], place: u32) {
        let Links { next, previous } = *things[place as usize].links();
        match previous {
            NONE => self.first = next,
            previous => things[previous as usize].links().next = next,
        }
        match next {
            NONE => self.last = previous,
            next => things[next as usize].links().previous = previous,
        }
        self.length -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Linked for Links {
        fn links(&mut self) -> &mut Links {
            self
        }
    }

    fn places(fifo: &Fifo, things: &[Links]) -> Vec<u32> {
        let mut places = Vec::new();
        let mut place = fifo.first;
        while place != NONE {
            places.push(place);
            place = things[place as usize].next;
        }
        places
    }

    #[test]
    fn a_list_keeps_its_order_whoever_leaves() {
        for leaving in 0..4 {
            let mut things = [Links::default(); 4];
            let mut fifo = Fifo::new();
            (0..4).for_each(|place| fifo.push(&mut things, place));
            fifo.remove(&mut things, leaving);
            let mut expected: Vec<u32> = (0..4).filter(|&place| place != leaving).collect();
            assert_eq!(places(&fifo, &things), expected);
            fifo.push(&mut things, leaving);
            expected.push(leaving);
            assert_eq!(places(&fifo, &things), expected);
            assert_eq!(fifo.len(), 4);
            for place in expected {
                assert_eq!(fifo.first(), Some(place));
                fifo.remove(&mut things, place);
            }
            assert_eq!((fifo.first(), fifo.len()), (None, 0));
        }
    }
}
