//! Slots of one leader epoch: a sorted map from offset to row, in chunks of bounded length.

use crate::row::RowNo;

const CHUNK_MAX: usize = 1024;

#[derive(Clone, Default)]
struct Chunk {
    offsets: Vec<i64>,
    rows: Vec<RowNo>,
}

impl Chunk {
    fn insert(&mut self, at: usize, offset: i64, row: RowNo) {
        if self.offsets.len() == self.offsets.capacity() {
            let more = (self.offsets.len() / 4).max(2);
            self.offsets.reserve_exact(more);
            self.rows.reserve_exact(more);
        }
        self.offsets.insert(at, offset);
        self.rows.insert(at, row);
    }
}

/// Returns the last of these slots that is not above `offset`.
#[inline]
pub fn floor_in((offsets, rows): (&[i64], &[RowNo]), offset: i64) -> Option<(i64, RowNo)> {
    let at = offsets.partition_point(|&one| one <= offset).checked_sub(1)?;
    Some((offsets[at], rows[at]))
}

/// No chunk is empty; offsets rise strictly within and across chunks.
#[derive(Clone, Default)]
pub struct Slots {
    chunks: Vec<Chunk>,
}

impl Slots {
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    pub fn is_long(&self) -> bool {
        self.chunks.len() > 1
    }

    pub fn len(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.offsets.len()).sum()
    }

    /// Returns the largest offset with a slot.
    #[inline]
    pub fn top(&self) -> Option<i64> {
        self.chunks.last().and_then(|chunk| chunk.offsets.last().copied())
    }

    /// Returns the number of the chunk that has the slot of `offset`, or would get it.
    #[inline]
    fn home(&self, offset: i64) -> usize {
        let last = self.chunks.len() - 1;
        if last == 0 || offset >= self.chunks[last].offsets[0] {
            return last;
        }
        self.chunks.partition_point(|chunk| chunk.offsets[0] <= offset).saturating_sub(1)
    }

    /// Returns the offsets and rows among which the last slot not above `offset` is, if any is.
    #[inline]
    pub fn around(&self, offset: i64) -> (&[i64], &[RowNo]) {
        if self.chunks.is_empty() {
            return (&[], &[]);
        }
        let chunk = &self.chunks[self.home(offset)];
        (&chunk.offsets, &chunk.rows)
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
        let at = chunk.offsets.partition_point(|&one| one <= offset);
        match chunk.offsets.get(at) {
            Some(&found) => Some(found),
            None => self.chunks.get(home + 1).map(|next| next.offsets[0]),
        }
    }

    pub fn get(&self, offset: i64) -> Option<RowNo> {
        self.floor(offset).filter(|slot| slot.0 == offset).map(|slot| slot.1)
    }

    /// Fills a new slot above `top`; returns whether a chunk was full.
    #[inline]
    pub fn append(&mut self, offset: i64, row: RowNo) -> bool {
        let is_full = self.chunks.last().is_none_or(|chunk| chunk.offsets.len() >= CHUNK_MAX);
        let was_empty = self.chunks.is_empty();
        if is_full {
            self.chunks.push(Chunk::default());
        }
        let last = self.chunks.len() - 1;
        let chunk = &mut self.chunks[last];
        let end = chunk.offsets.len();
        chunk.insert(end, offset, row);
        is_full && !was_empty
    }

    /// Fills the slot of `offset`, also over another row; returns whether a chunk was full.
    pub fn put(&mut self, offset: i64, row: RowNo) -> bool {
        if self.top().is_none_or(|top| offset > top) {
            return self.append(offset, row);
        }
        let home = self.home(offset);
        let chunk = &mut self.chunks[home];
        let at = chunk.offsets.partition_point(|&one| one < offset);
        if chunk.offsets.get(at) == Some(&offset) {
            chunk.rows[at] = row;
            return false;
        }
        chunk.insert(at, offset, row);
        if chunk.offsets.len() <= CHUNK_MAX {
            return false;
        }
        let middle = chunk.offsets.len() / 2;
        let upper = Chunk { offsets: chunk.offsets.split_off(middle), rows: chunk.rows.split_off(middle) };
        self.chunks.insert(home + 1, upper);
        true
    }

    pub fn pop_last(&mut self) -> Option<(i64, RowNo)> {
        let chunk = self.chunks.last_mut()?;
        let found = chunk.offsets.pop().zip(chunk.rows.pop());
        if chunk.offsets.is_empty() {
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
        let Ok(at) = chunk.offsets.binary_search(&offset) else { return };
        chunk.offsets.remove(at);
        chunk.rows.remove(at);
        if chunk.offsets.is_empty() {
            self.chunks.remove(home);
        }
    }

    /// Returns the offsets and rows of one piece of them; `None` behind the last piece.
    pub fn chunk(&self, number: usize) -> Option<(&[i64], &[RowNo])> {
        self.chunks.get(number).map(|chunk| (&*chunk.offsets, &*chunk.rows))
    }

    pub fn iter(&self) -> impl Iterator<Item = (i64, RowNo)> + '_ {
        self.chunks.iter().flat_map(|chunk| chunk.offsets.iter().copied().zip(chunk.rows.iter().copied()))
    }

    /// Returns the slots from `offset` on, by rising offset.
    pub fn since(&self, offset: i64) -> impl Iterator<Item = (i64, RowNo)> + '_ {
        let home = if self.chunks.is_empty() { 0 } else { self.home(offset) };
        self.chunks[home..]
            .iter()
            .flat_map(|chunk| chunk.offsets.iter().copied().zip(chunk.rows.iter().copied()))
            .skip_while(move |slot| slot.0 < offset)
    }

    pub fn held_bytes(&self) -> usize {
        let of_chunk = |chunk: &Chunk| chunk.offsets.capacity() * 8 + chunk.rows.capacity() * 4;
        self.chunks.capacity() * size_of::<Chunk>() + self.chunks.iter().map(of_chunk).sum::<usize>()
    }
}
