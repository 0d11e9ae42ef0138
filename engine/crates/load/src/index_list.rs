//! An intrusive doubly linked list over the indices of a slice: push, remove and first take a few instructions and no
//! memory.
//!
//! The lists of the load are in the order of time. Since a timeout is the same for all, the first of a list is the
//! first to run out of time, and no request needs a timer.

/// The end of a list.
const NONE: u32 = u32::MAX;

/// The neighbours of an item in its list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Links {
    next: u32,
    previous: u32,
}

impl Default for Links {
    fn default() -> Self {
        Self { next: NONE, previous: NONE }
    }
}

/// An item that can be in one list at a time.
pub(crate) trait Linked {
    fn links(&mut self) -> &mut Links;
}

/// Indices in the order in which they were pushed.
#[derive(Debug)]
pub(crate) struct IndexList {
    first: u32,
    last: u32,
    length: u32,
}

impl IndexList {
    pub(crate) fn new() -> Self {
        Self { first: NONE, last: NONE, length: 0 }
    }

    #[inline]
    pub(crate) fn len(&self) -> u64 {
        u64::from(self.length)
    }

    /// Returns the index that was pushed first.
    #[inline]
    pub(crate) fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    #[inline]
    pub(crate) fn push(&mut self, items: &mut [impl Linked], index: u32) {
        *items[index as usize].links() = Links { next: NONE, previous: self.last };
        match self.last {
            NONE => self.first = index,
            last => items[last as usize].links().next = index,
        }
        self.last = index;
        self.length += 1;
    }

    /// Removes an index of this list.
    #[inline]
    pub(crate) fn remove(&mut self, items: &mut [impl Linked], index: u32) {
        let Links { next, previous } = *items[index as usize].links();
        match previous {
            NONE => self.first = next,
            previous => items[previous as usize].links().next = next,
        }
        match next {
            NONE => self.last = previous,
            next => items[next as usize].links().previous = previous,
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

    fn indices(list: &IndexList, items: &[Links]) -> Vec<u32> {
        let mut indices = Vec::new();
        let mut index = list.first;
        while index != NONE {
            indices.push(index);
            index = items[index as usize].next;
        }
        indices
    }

    #[test]
    fn order_survives_removal_of_any_item() {
        for removed in 0..4 {
            let mut items = [Links::default(); 4];
            let mut list = IndexList::new();
            (0..4).for_each(|index| list.push(&mut items, index));
            list.remove(&mut items, removed);
            let mut expected: Vec<u32> = (0..4).filter(|&index| index != removed).collect();
            assert_eq!(indices(&list, &items), expected);
            list.push(&mut items, removed);
            expected.push(removed);
            assert_eq!(indices(&list, &items), expected);
            assert_eq!(list.len(), 4);
            for index in expected {
                assert_eq!(list.first(), Some(index));
                list.remove(&mut items, index);
            }
            assert_eq!((list.first(), list.len()), (None, 0));
        }
    }
}
