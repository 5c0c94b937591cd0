//! The state of one leader epoch of one user partition: finds the segment that answers an offset.
//!
//! Kafka's structures and displacement rules: *slots* map the first offset of a finished segment to
//! its row; *unreferenced* holds other segments of the epoch (started, being deleted, displaced);
//! *highest* is the watermark, which only rises. Finished segments that slots may hide are in
//! *shadowed*, so that every offset which they cover is found.
//!
//! A finished segment that lists the epoch is in *shadowed* if it has no slot, or if another slot's
//! offset lies in its range. Spare entries cost time, never answers.

use std::cell::OnceCell;
use std::collections::BinaryHeap;

use crate::row::{FINISHED, RowNo};
use crate::row_set::RowSet;
use crate::row_store::RowStore;
use crate::skips::TxnIndexSkips;
use crate::slots::{Around, Slots};

/// Segments that a search steps over one by one before it makes the stretches of a short epoch.
const STEPS_MAX: usize = 64;

/// `rows[i]` answers from `firsts[i]` up to the next; `None` for a gap.
#[derive(Default)]
struct Cover {
    firsts: Vec<i64>,
    rows: Vec<Option<RowNo>>,
}

/// What only epochs with overlaps or many slots have.
#[derive(Default)]
struct More {
    shadowed: RowSet,
    /// Index of the shadowed segments; dropped when one comes, goes or finishes again.
    cover: OnceCell<Cover>,
    skips: Option<TxnIndexSkips>,
}

#[derive(Default)]
pub struct Epoch {
    pub epoch: i32,
    /// Finished segments that name the epoch and may have a transaction index.
    pub indexed_count: u32,
    pub highest: Option<i64>,
    pub size_bytes: i64,
    pub slots: Slots,
    pub unreferenced: RowSet,
    more: Option<Box<More>>,
}

impl Epoch {
    pub fn new(epoch: i32) -> Self {
        Epoch { epoch, ..Epoch::default() }
    }

    /// Reads both ends of what a look-up needs of it.
    #[inline]
    pub fn touch(&self) -> u64 {
        self.epoch as u64 ^ self.size_bytes as u64 ^ self.highest.map_or(0, |highest| highest as u64)
    }

    fn more(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }

    /// Gives `number`, which covers `first` to `last`, a slot; returns whether another segment lost
    /// its own. Kafka's loop: while the watermark is not above `last`, slots from `first` on are
    /// emptied, largest first.
    pub fn finish(&mut self, number: RowNo, first: i64, last: i64, rows: &RowStore) -> bool {
        let is_behind_all = match self.slots.top() {
            None => true,
            Some(top) => top < first && self.highest.is_some_and(|highest| highest < first),
        };
        let displaced = if is_behind_all {
            if self.slots.append(first, number) {
                self.look_for_stretches(rows);
            }
            false
        } else {
            self.displace(number, first, last, rows)
        };
        self.unreferenced.remove(number);
        if self.highest.is_none_or(|highest| highest < last) {
            self.highest = Some(last);
        }
        if let Some(more) = &mut self.more {
            if displaced || more.shadowed.contains(number) {
                more.cover.take();
            }
        }
        displaced
    }

    fn displace(&mut self, number: RowNo, first: i64, last: i64, rows: &RowStore) -> bool {
        let mut losers = Vec::new();
        if self.highest.is_none_or(|highest| highest <= last) {
            while self.slots.top().is_some_and(|top| top >= first) {
                losers.extend(self.slots.pop_last().map(|slot| slot.1));
            }
        }
        losers.extend(self.slots.get(first));
        let is_cut = self.slots.put(first, number);
        if let Some(skips) = self.more.as_mut().and_then(|more| more.skips.as_mut()) {
            skips.changed(first, &self.slots, rows);
        }
        if is_cut {
            self.look_for_stretches(rows);
        }
        losers.retain(|&loser| loser != number);
        for &loser in &losers {
            self.unreferenced.insert(loser);
            self.more().shadowed.insert(loser);
        }
        self.note_overlap(number, first, last, rows);
        !losers.is_empty()
    }

    /// Remembers the segment that a neighbour's slot may hide: the new one or the one before.
    fn note_overlap(&mut self, number: RowNo, first: i64, last: i64, rows: &RowStore) {
        if self.slots.above(first).is_some_and(|after| after <= last) {
            self.more().shadowed.insert(number);
        }
        let Some((_, before)) = first.checked_sub(1).and_then(|offset| self.slots.floor(offset)) else { return };
        let covered = rows.get(before).range(rows.tail(before), self.epoch);
        if covered.is_some_and(|range| range.1 >= first) {
            let more = self.more();
            more.shadowed.insert(before);
            more.cover.take();
        }
    }

    /// Takes the slot of `number` at `first` away, if it has one.
    pub fn unmap(&mut self, number: RowNo, first: i64, rows: &RowStore) {
        if self.slots.get(first) == Some(number) {
            self.slots.remove(first);
            if let Some(more) = &mut self.more {
                if self.slots.is_empty() {
                    more.skips = None;
                } else if let Some(skips) = &mut more.skips {
                    skips.changed(first, &self.slots, rows);
                }
            }
        }
        self.unreferenced.insert(number);
        self.forget_shadowed(number);
    }

    fn forget_shadowed(&mut self, number: RowNo) {
        let Some(more) = &mut self.more else { return };
        if more.shadowed.remove(number) {
            more.cover.take();
        }
        if more.shadowed.is_empty() && more.skips.is_none() {
            self.more = None;
        }
    }

    /// Derives the stretches of all slots; called whenever a chunk of slots is full.
    fn look_for_stretches(&mut self, rows: &RowStore) {
        let epoch = self.epoch;
        let more = self.more.get_or_insert_default();
        more.skips.get_or_insert_with(|| TxnIndexSkips::new(epoch)).catch_up(&self.slots, rows);
    }

    /// Derives what an image does not hold: `unreferenced` and counts are filled in already.
    pub fn derive(&mut self, rows: &RowStore) {
        let mut before: Option<RowNo> = None;
        let mut hidden = Vec::new();
        for (offset, number) in self.slots.iter() {
            if let Some(before) = before {
                let covered = rows.get(before).range(rows.tail(before), self.epoch);
                if covered.is_some_and(|range| range.1 >= offset) {
                    hidden.push(before);
                }
            }
            before = Some(number);
        }
        hidden.extend(self.unreferenced.iter().filter(|&number| {
            let row = rows.get(number);
            row.state == FINISHED && row.range(rows.tail(number), self.epoch).is_some()
        }));
        for number in hidden {
            self.more().shadowed.insert(number);
        }
        if self.slots.is_long() {
            self.look_for_stretches(rows);
        }
    }

    /// Returns whether any finished copy ever reached that far.
    #[inline]
    fn reaches(&self, offset: i64) -> bool {
        self.highest.is_some_and(|highest| offset <= highest)
    }

    /// Returns the finished segment for `offset`: by slot, else the last finished over it.
    #[inline]
    pub fn lookup(&self, offset: i64, rows: &RowStore) -> Option<RowNo> {
        if !self.reaches(offset) {
            return None;
        }
        self.lookup_from(self.around(offset).floor(offset), offset, rows)
    }

    /// Returns the slots among which the one for `offset` is.
    #[inline]
    pub fn around(&self, offset: i64) -> Around<'_> {
        self.slots.around(offset, self.highest.unwrap_or(0))
    }

    /// Looks up as `lookup` does, where `slot` is the last one that is not above `offset`.
    #[inline]
    pub fn lookup_from(&self, slot: Option<(i64, RowNo)>, offset: i64, rows: &RowStore) -> Option<RowNo> {
        if !self.reaches(offset) {
            return None;
        }
        if let Some((_, number)) = slot {
            let row = rows.get(number);
            let range = match row.more_epochs {
                0 => (row.epoch == self.epoch).then_some((row.first, row.end)),
                _ => row.range(rows.tail(number), self.epoch),
            };
            if range.is_some_and(|range| offset <= range.1) {
                return Some(number);
            }
        }
        let more = self.more.as_ref().filter(|more| !more.shadowed.is_empty())?;
        let cover = more.cover.get_or_init(|| self.build_cover(&more.shadowed, rows));
        let at = cover.firsts.partition_point(|&first| first <= offset).checked_sub(1)?;
        cover.rows[at]
    }

    fn build_cover(&self, shadowed: &RowSet, rows: &RowStore) -> Cover {
        let mut entries = Vec::new();
        for number in shadowed.iter() {
            let row = rows.get(number);
            if let Some((first, last)) = row.range(rows.tail(number), self.epoch) {
                if row.state == FINISHED && first <= last {
                    entries.push((first, last, row.finish, number));
                }
            }
        }
        let mut bounds: Vec<i128> =
            entries.iter().flat_map(|&(first, last, ..)| [first.into(), i128::from(last) + 1]).collect();
        bounds.sort_unstable();
        bounds.dedup();
        // The one finished last is on top; of two with one finish offset, which no log has, the one
        // that ends first and has the least id.
        entries.sort_unstable_by_key(|&(first, last, finish, number)| {
            std::cmp::Reverse((first, last, -i128::from(finish), rows.get(number).uuid))
        });
        let mut open = BinaryHeap::new();
        let mut cover = Cover::default();
        for bound in bounds {
            while entries.last().is_some_and(|entry| i128::from(entry.0) == bound) {
                if let Some((_, last, finish, number)) = entries.pop() {
                    let key = (finish, std::cmp::Reverse(last), std::cmp::Reverse(rows.get(number).uuid));
                    open.push((key, number));
                }
            }
            while open.peek().is_some_and(|((_, last, _), _)| i128::from(last.0) < bound) {
                open.pop();
            }
            let Ok(first) = i64::try_from(bound) else { break }; // behind the largest offset
            cover.firsts.push(first);
            cover.rows.push(open.peek().map(|(_, number)| *number));
        }
        cover
    }

    /// Returns the next finished segment that may have a transaction index, as a walk would: it
    /// looks up `offset`, then the offset behind that segment, and so on.
    pub fn next_with_txn_index(&mut self, mut offset: i64, rows: &RowStore) -> Option<RowNo> {
        if self.indexed_count == 0 {
            return None;
        }
        let mut steps = 0;
        loop {
            let number = self.lookup(offset, rows)?;
            let mut row = rows.get(number);
            if !row.txn_index_empty {
                return Some(number);
            }
            steps += 1;
            let has_skips = self.more.as_ref().is_some_and(|more| more.skips.is_some());
            if has_skips || steps > STEPS_MAX {
                if let Some(slot) = self.slots.floor(offset).filter(|slot| slot.1 == number) {
                    self.look_for_stretches(rows);
                    let skips = self.more.as_ref().and_then(|more| more.skips.as_ref());
                    let end = skips.and_then(|skips| skips.end_from(slot.0, &self.slots));
                    if let Some((at, last)) = end.filter(|end| end.0 > offset) {
                        offset = at;
                        row = rows.get(last);
                    }
                }
            }
            let following = row.end.checked_add(1)?;
            if following <= offset {
                // An epoch may be listed with offsets behind the end; Kafka's walk never ends there.
                return None;
            }
            offset = following;
        }
    }

    /// Gives back all room when no segment is left: only the watermark has to stay.
    pub fn settle(&mut self) {
        if self.unreferenced.is_empty() && self.slots.is_empty() {
            (self.slots, self.unreferenced, self.more) = Default::default();
        }
    }

    pub fn held_bytes(&self) -> usize {
        let of_more = |more: &More| {
            let cover = more.cover.get().map_or(0, |cover| cover.firsts.capacity() * 16);
            size_of::<More>() + more.shadowed.held_bytes() + cover
        };
        self.slots.held_bytes() + self.unreferenced.held_bytes() + self.more.as_deref().map_or(0, of_more)
    }

    /// Takes one of its rows out; for an epoch that answers nothing any more.
    pub fn pop_any(&mut self) -> Option<RowNo> {
        self.slots.pop_last().map(|slot| slot.1).or_else(|| self.unreferenced.pop())
    }

    /// Returns every row that is listed here, in no order.
    pub fn listed(&self) -> impl Iterator<Item = RowNo> + '_ {
        self.slots.iter().map(|slot| slot.1).chain(self.unreferenced.iter())
    }

    /// Returns what is wrong with what is derived, in words.
    pub fn violations(&self, rows: &RowStore) -> Vec<String> {
        let name = format!("epoch {}", self.epoch);
        let mut found = Vec::new();
        let mut fresh = Epoch::new(self.epoch);
        fresh.slots = self.slots.clone();
        for number in self.unreferenced.iter() {
            fresh.unreferenced.insert(number);
        }
        fresh.derive(rows);
        let shadowed =
            |epoch: &Epoch| -> Vec<RowNo> { epoch.more.iter().flat_map(|more| more.shadowed.iter()).collect() };
        let kept = shadowed(self);
        let missing = shadowed(&fresh).iter().filter(|number| !kept.contains(number)).count();
        if missing > 0 {
            found.push(format!("{name}: {missing} hidden segments are not remembered"));
        }
        if let Some(more) = &self.more {
            if let Some(cover) = more.cover.get() {
                let fresh = self.build_cover(&more.shadowed, rows);
                if fresh.firsts != cover.firsts || fresh.rows != cover.rows {
                    found.push(format!("{name}: the index of hidden segments is out of date"));
                }
            }
            if let Some(skips) = &more.skips {
                found.extend(skips.violations(&self.slots, rows));
            }
        }
        found
    }
}
