//! Slots of one leader epoch: a sorted map from offset to row, in chunks of bounded length.

use crate::row::RowNo;

const CHUNK_MAX: usize = 1024;

/// A slot; packed, since the offset and the row of one slot are read together.
#[derive(Clone, Copy)]
#[repr(C, packed(4))]
pub struct Slot {
    offset: i64,
    row: RowNo,
}

impl Slot {
    #[inline]
    pub fn pair(self) -> (i64, RowNo) {
        (self.offset, self.row)
    }
}

/// Adds a slot to a chunk, which grows by a quarter.
fn insert(chunk: &mut Vec<Slot>, at: usize, slot: Slot) {
    if chunk.len() == chunk.capacity() {
        chunk.reserve_exact((chunk.len() / 4).max(2));
    }
    chunk.insert(at, slot);
}

/// Slots by rising offset, and what is known of them without reading one.
#[derive(Clone, Copy, Default)]
pub struct Around<'a> {
    slots: &'a [Slot],
    first: i64,
    /// The largest offset that their segments cover, as far as known: only the cost depends on it.
    reach: i64,
}

impl Around<'_> {
    /// Returns which of the slots, of which there is one at least, has `offset` if all are as long.
    #[inline]
    fn guess(&self, offset: i64) -> usize {
        let Around { slots, first, reach } = self;
        let share = offset.wrapping_sub(*first) as u64 as f64 / (reach.wrapping_sub(*first) as u64 as f64 + 1.0);
        ((share * slots.len() as f64) as usize).min(slots.len() - 1)
    }

    /// Reads where a look-up of `offset` begins; several such reads wait for memory together.
    #[inline]
    pub fn touch(&self, offset: i64) -> u64 {
        if self.slots.is_empty() { 0 } else { self.slots[self.guess(offset)].offset as u64 }
    }

    /// Returns the last of these slots that is not above `offset`.
    ///
    /// Segments of one size are the most common: a slot is looked for where it would be then, and
    /// around it in steps that double. Less memory is read than in halving the whole.
    #[inline]
    pub fn floor(self, offset: i64) -> Option<(i64, RowNo)> {
        let Around { slots, first, .. } = self;
        if slots.is_empty() || offset < first {
            return None;
        }
        let guess = self.guess(offset);
        // The slot at `low` is not above `offset`, and the one at `high` is, where there is one.
        let mut step = 1;
        let (low, high) = if slots[guess].offset <= offset {
            let mut low = guess;
            while low + step < slots.len() && slots[low + step].offset <= offset {
                low += step;
                step *= 2;
            }
            (low, slots.len().min(low + step))
        } else {
            let mut high = guess;
            while high > step && slots[high - step].offset > offset {
                high -= step;
                step *= 2;
            }
            (high.saturating_sub(step), high)
        };
        let at = low + slots[low..high].partition_point(|slot| slot.offset <= offset) - 1;
        Some(slots[at].pair())
    }
}

/// Offsets rise strictly within and across chunks. No chunk is empty, but for `last` where there is
/// no slot at all.
#[derive(Clone, Default)]
pub struct Slots {
    /// Chunks below `last`; nearly always none.
    #[expect(clippy::box_collection, reason = "an epoch without segments has to be small")]
    lower: Option<Box<Vec<Vec<Slot>>>>,
    last: Vec<Slot>,
    /// The first offset of `last`: a look-up reads it here, without the chunk.
    first: i64,
}

impl Slots {
    pub fn is_empty(&self) -> bool {
        self.last.is_empty()
    }

    pub fn is_long(&self) -> bool {
        !self.lower().is_empty()
    }

    #[inline]
    fn lower(&self) -> &[Vec<Slot>] {
        self.lower.as_ref().map_or(&[], |lower| lower)
    }

    fn lower_mut(&mut self) -> &mut Vec<Vec<Slot>> {
        self.lower.get_or_insert_default()
    }

    fn chunks(&self) -> impl Iterator<Item = &Vec<Slot>> {
        self.lower().iter().chain(std::iter::once(&self.last))
    }

    pub fn len(&self) -> usize {
        self.chunks().map(Vec::len).sum()
    }

    /// Returns the largest offset with a slot.
    #[inline]
    pub fn top(&self) -> Option<i64> {
        self.last.last().map(|slot| slot.offset)
    }

    /// Returns which chunk of `lower` has the slot of `offset`, or would get it; `None` for `last`.
    #[inline]
    fn home(&self, offset: i64) -> Option<usize> {
        if self.lower.is_none() || offset >= self.first {
            return None;
        }
        Some(self.lower().partition_point(|chunk| chunk[0].offset <= offset).saturating_sub(1))
    }

    fn chunk_mut(&mut self, home: Option<usize>) -> &mut Vec<Slot> {
        match home {
            None => &mut self.last,
            Some(number) => &mut self.lower_mut()[number],
        }
    }

    /// Notes where `last` begins, and lets none be empty, after a change.
    fn settle(&mut self) {
        if self.last.is_empty() {
            self.last = self.lower.as_mut().and_then(|lower| lower.pop()).unwrap_or_default();
        }
        if !self.is_long() {
            self.lower = None;
        }
        self.first = self.last.first().map_or(0, |slot| slot.offset);
    }

    /// Returns the slots among which the last one not above `offset` is, if any is. `reach` is the
    /// largest offset that any segment covers.
    #[inline]
    pub fn around(&self, offset: i64, reach: i64) -> Around<'_> {
        let Some(number) = self.home(offset) else {
            return Around { slots: &self.last, first: self.first, reach };
        };
        let (slots, next) = (&self.lower()[number], self.lower().get(number + 1));
        let reach = next.map_or(self.first, |next| next[0].offset).saturating_sub(1);
        Around { slots, first: slots[0].offset, reach }
    }

    /// Returns the last slot that is not above `offset`.
    #[inline]
    pub fn floor(&self, offset: i64) -> Option<(i64, RowNo)> {
        self.around(offset, self.top().unwrap_or(0)).floor(offset)
    }

    /// Returns the first offset with a slot above `offset`.
    pub fn above(&self, offset: i64) -> Option<i64> {
        let home = self.home(offset);
        let chunk = home.map_or(&self.last, |number| &self.lower()[number]);
        let at = chunk.partition_point(|slot| slot.offset <= offset);
        let next = || Some(self.lower().get(home? + 1).map_or(self.first, |next| next[0].offset));
        chunk.get(at).map(|found| found.offset).or_else(next)
    }

    pub fn get(&self, offset: i64) -> Option<RowNo> {
        self.floor(offset).filter(|slot| slot.0 == offset).map(|slot| slot.1)
    }

    /// Fills a new slot above `top`; returns whether a chunk was full.
    #[inline]
    pub fn append(&mut self, offset: i64, row: RowNo) -> bool {
        let is_full = self.last.len() >= CHUNK_MAX;
        if is_full {
            let full = std::mem::take(&mut self.last);
            self.lower_mut().push(full);
        }
        if self.last.is_empty() {
            self.first = offset;
        }
        let end = self.last.len();
        insert(&mut self.last, end, Slot { offset, row });
        is_full
    }

    /// Fills the slot of `offset`, also over another row; returns whether a chunk was full.
    pub fn put(&mut self, offset: i64, row: RowNo) -> bool {
        if self.top().is_none_or(|top| offset > top) {
            return self.append(offset, row);
        }
        let home = self.home(offset);
        let chunk = self.chunk_mut(home);
        let at = chunk.partition_point(|slot| slot.offset < offset);
        if let Some(found) = chunk.get_mut(at).filter(|found| found.offset == offset) {
            found.row = row;
            return false;
        }
        insert(chunk, at, Slot { offset, row });
        let is_full = chunk.len() > CHUNK_MAX;
        if is_full {
            let upper = chunk.split_off(chunk.len() / 2);
            match home {
                None => {
                    let full = std::mem::replace(&mut self.last, upper);
                    self.lower_mut().push(full);
                }
                Some(number) => self.lower_mut().insert(number + 1, upper),
            }
        }
        self.settle();
        is_full
    }

    pub fn pop_last(&mut self) -> Option<(i64, RowNo)> {
        let found = self.last.pop().map(Slot::pair);
        self.settle();
        found
    }

    /// Empties the slot of `offset`, if there is one.
    pub fn remove(&mut self, offset: i64) {
        let home = self.home(offset);
        let chunk = self.chunk_mut(home);
        let at = chunk.partition_point(|slot| slot.offset < offset);
        if chunk.get(at).is_none_or(|slot| slot.offset != offset) {
            return;
        }
        chunk.remove(at);
        if let (true, Some(number)) = (chunk.is_empty(), home) {
            self.lower_mut().remove(number);
        }
        self.settle();
    }

    /// Returns one piece of them; `None` behind the last piece.
    pub fn chunk(&self, number: usize) -> Option<&[Slot]> {
        self.chunks().nth(number).map(Vec::as_slice).filter(|slots| !slots.is_empty())
    }

    pub fn iter(&self) -> impl Iterator<Item = (i64, RowNo)> + '_ {
        self.chunks().flatten().map(|slot| slot.pair())
    }

    /// Returns the slots from `offset` on, by rising offset.
    pub fn since(&self, offset: i64) -> impl Iterator<Item = (i64, RowNo)> + '_ {
        let home = self.home(offset).unwrap_or(self.lower().len());
        self.chunks().skip(home).flatten().map(|slot| slot.pair()).skip_while(move |slot| slot.0 < offset)
    }

    pub fn held_bytes(&self) -> usize {
        let of_chunks: usize = self.chunks().map(Vec::capacity).sum();
        let of_lower = self.lower.as_ref().map_or(0, |lower| (lower.capacity() + 1) * size_of::<Vec<Slot>>());
        of_lower + of_chunks * size_of::<Slot>()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn check(slots: &Slots, model: &BTreeMap<i64, RowNo>, offset: i64) {
        let floor = model.range(..=offset).next_back();
        assert_eq!(slots.floor(offset), floor.map(|(&at, &row)| (at, row)));
        assert_eq!(slots.above(offset), model.range(offset + 1..).next().map(|found| *found.0));
        assert_eq!(slots.get(offset), model.get(&offset).copied());
        assert_eq!(slots.top(), model.last_key_value().map(|found| *found.0));
        assert_eq!(slots.len(), model.len());
    }

    #[test]
    fn slots_of_many_chunks_are_as_a_sorted_map() {
        let (mut slots, mut model, mut state) = (Slots::default(), BTreeMap::new(), 1_u64);
        for step in 0..60_000_u32 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let offset = (state >> 40) as i64 % 9_000;
            match (state >> 33) % 16 {
                0..4 if step > 30_000 => {
                    slots.remove(offset);
                    model.remove(&offset);
                }
                4 => assert_eq!(slots.pop_last(), model.pop_last()),
                _ => {
                    slots.put(offset, step);
                    model.insert(offset, step);
                }
            }
            check(&slots, &model, (state >> 20) as i64 % 9_100 - 50);
            if step % 5_000 == 0 {
                assert!(slots.iter().eq(model.iter().map(|(&at, &row)| (at, row))));
                assert!(slots.since(offset).eq(model.range(offset..).map(|(&at, &row)| (at, row))));
                let pieces = (0..).map_while(|number| slots.chunk(number)).map(<[Slot]>::len).sum::<usize>();
                assert_eq!(pieces, model.len());
            }
        }
        assert!(slots.is_long());
        while let Some(found) = slots.pop_last() {
            assert_eq!(Some(found), model.pop_last());
            check(&slots, &model, found.0);
        }
        assert!(slots.is_empty() && model.is_empty());
    }
}
