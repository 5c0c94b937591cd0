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

/// Returns the last of these slots that is not above `offset`.
///
/// Segments of one size are the most common: a slot is looked for where it would be then, and
/// around it in steps that double. Less memory is read than in halving the whole.
#[inline]
pub fn floor_in(slots: &[Slot], offset: i64) -> Option<(i64, RowNo)> {
    let (first, last) = (slots.first()?.offset, slots.last()?.offset);
    if offset < first {
        return None;
    }
    if offset >= last {
        return slots.last().map(|slot| slot.pair());
    }
    let share = offset.wrapping_sub(first) as u64 as f64 / last.wrapping_sub(first) as u64 as f64;
    let guess = ((share * (slots.len() - 1) as f64) as usize).min(slots.len() - 2);
    // The slot at `low` is not above `offset`, and the one at `high` is.
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

/// No chunk is empty; offsets rise strictly within and across chunks.
#[derive(Clone, Default)]
pub struct Slots {
    chunks: Vec<Vec<Slot>>,
}

impl Slots {
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    pub fn is_long(&self) -> bool {
        self.chunks.len() > 1
    }

    pub fn len(&self) -> usize {
        self.chunks.iter().map(Vec::len).sum()
    }

    /// Returns the largest offset with a slot.
    #[inline]
    pub fn top(&self) -> Option<i64> {
        self.chunks.last().and_then(|chunk| chunk.last()).map(|slot| slot.offset)
    }

    /// Returns the number of the chunk that has the slot of `offset`, or would get it.
    #[inline]
    fn home(&self, offset: i64) -> usize {
        let last = self.chunks.len() - 1;
        if last == 0 || offset >= self.chunks[last][0].offset {
            return last;
        }
        self.chunks.partition_point(|chunk| chunk[0].offset <= offset).saturating_sub(1)
    }

    /// Returns the slots among which the last one not above `offset` is, if any is.
    #[inline]
    pub fn around(&self, offset: i64) -> &[Slot] {
        if self.chunks.is_empty() {
            return &[];
        }
        &self.chunks[self.home(offset)]
    }

    /// Returns the last slot that is not above `offset`.
    #[inline]
    pub fn floor(&self, offset: i64) -> Option<(i64, RowNo)> {
        floor_in(self.around(offset), offset)
    }

    /// Returns the first offset with a slot above `offset`.
    pub fn above(&self, offset: i64) -> Option<i64> {
        if self.chunks.is_empty() {
            return None;
        }
        let home = self.home(offset);
        let chunk = &self.chunks[home];
        let at = chunk.partition_point(|slot| slot.offset <= offset);
        match chunk.get(at) {
            Some(found) => Some(found.offset),
            None => self.chunks.get(home + 1).map(|next| next[0].offset),
        }
    }

    pub fn get(&self, offset: i64) -> Option<RowNo> {
        self.floor(offset).filter(|slot| slot.0 == offset).map(|slot| slot.1)
    }

    /// Fills a new slot above `top`; returns whether a chunk was full.
    #[inline]
    pub fn append(&mut self, offset: i64, row: RowNo) -> bool {
        let is_full = self.chunks.last().is_none_or(|chunk| chunk.len() >= CHUNK_MAX);
        let was_empty = self.chunks.is_empty();
        if is_full {
            self.chunks.push(Vec::new());
        }
        let last = self.chunks.len() - 1;
        let chunk = &mut self.chunks[last];
        insert(chunk, chunk.len(), Slot { offset, row });
        is_full && !was_empty
    }

    /// Fills the slot of `offset`, also over another row; returns whether a chunk was full.
    pub fn put(&mut self, offset: i64, row: RowNo) -> bool {
        if self.top().is_none_or(|top| offset > top) {
            return self.append(offset, row);
        }
        let home = self.home(offset);
        let chunk = &mut self.chunks[home];
        let at = chunk.partition_point(|slot| slot.offset < offset);
        if let Some(found) = chunk.get_mut(at).filter(|found| found.offset == offset) {
            found.row = row;
            return false;
        }
        insert(chunk, at, Slot { offset, row });
        if chunk.len() <= CHUNK_MAX {
            return false;
        }
        let upper = chunk.split_off(chunk.len() / 2);
        self.chunks.insert(home + 1, upper);
        true
    }

    pub fn pop_last(&mut self) -> Option<(i64, RowNo)> {
        let chunk = self.chunks.last_mut()?;
        let found = chunk.pop().map(Slot::pair);
        if chunk.is_empty() {
            self.chunks.pop();
        }
        found
    }

    /// Empties the slot of `offset`, if there is one.
    pub fn remove(&mut self, offset: i64) {
        if self.chunks.is_empty() {
            return;
        }
        let home = self.home(offset);
        let chunk = &mut self.chunks[home];
        let at = chunk.partition_point(|slot| slot.offset < offset);
        if chunk.get(at).is_none_or(|slot| slot.offset != offset) {
            return;
        }
        chunk.remove(at);
        if chunk.is_empty() {
            self.chunks.remove(home);
        }
    }

    /// Returns one piece of them; `None` behind the last piece.
    pub fn chunk(&self, number: usize) -> Option<&[Slot]> {
        self.chunks.get(number).map(Vec::as_slice)
    }

    pub fn iter(&self) -> impl Iterator<Item = (i64, RowNo)> + '_ {
        self.chunks.iter().flatten().map(|slot| slot.pair())
    }

    /// Returns the slots from `offset` on, by rising offset.
    pub fn since(&self, offset: i64) -> impl Iterator<Item = (i64, RowNo)> + '_ {
        let home = if self.chunks.is_empty() { 0 } else { self.home(offset) };
        self.chunks[home..].iter().flatten().map(|slot| slot.pair()).skip_while(move |slot| slot.0 < offset)
    }

    pub fn held_bytes(&self) -> usize {
        let of_chunks: usize = self.chunks.iter().map(Vec::capacity).sum();
        self.chunks.capacity() * size_of::<Vec<Slot>>() + of_chunks * size_of::<Slot>()
    }
}
