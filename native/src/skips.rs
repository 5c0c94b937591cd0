//! Stretches of one leader epoch: gapless segments without a transaction index, passed in one step.
//!
//! A slot *ends* a stretch where a walk from it does not simply step into the slot behind, or where
//! that one may have a transaction index. Of the slots below `looked_to`, which is not above the
//! last one, every one that ends a stretch is in `ends`, and no offset without a slot is.

use crate::row::RowNo;
use crate::row_store::RowStore;
use crate::slots::Slots;

pub struct TxnIndexSkips {
    epoch: i32,
    ends: Slots,
    looked_to: i64,
}

impl TxnIndexSkips {
    pub fn new(epoch: i32) -> Self {
        TxnIndexSkips { epoch, ends: Slots::default(), looked_to: i64::MIN }
    }

    /// Looks at all slots that were not looked at, but for the last one: nothing follows it.
    pub fn catch_up(&mut self, slots: &Slots, rows: &RowStore) {
        if Some(self.looked_to) == slots.top() {
            return;
        }
        let mut before: Option<(i64, RowNo, Option<i64>)> = None; // a slot without an index, and what follows
        let mut offset = self.looked_to;
        for (at, number) in slots.since(self.looked_to) {
            let row = rows.get(number);
            if let Some((slot, holder, following)) = before {
                if !(row.txn_index_empty && following == Some(at) && at <= self.last_of(number, rows)) {
                    self.ends.put(slot, holder);
                }
            }
            before = row.txn_index_empty.then(|| (at, number, row.end.checked_add(1)));
            offset = at;
        }
        self.looked_to = offset;
    }

    /// The slot of `offset` was filled or emptied, or all from there on were; some are left.
    pub fn changed(&mut self, offset: i64, slots: &Slots, rows: &RowStore) {
        let Some(top) = slots.top() else { return };
        if self.looked_to > top {
            self.looked_to = top;
            while self.ends.top().is_some_and(|end| end >= top) {
                self.ends.pop_last();
            }
        }
        self.ends.remove(offset);
        let mut found = slots.floor(offset);
        if let Some(slot) = found.filter(|slot| slot.0 == offset) {
            self.look_at(slot, slots, rows);
            found = offset.checked_sub(1).and_then(|before| slots.floor(before));
        }
        if let Some(slot) = found {
            self.look_at(slot, slots, rows);
        }
    }

    fn look_at(&mut self, (offset, number): (i64, RowNo), slots: &Slots, rows: &RowStore) {
        if offset >= self.looked_to {
            return;
        }
        if self.is_end(offset, number, slots, rows) {
            self.ends.put(offset, number);
        } else {
            self.ends.remove(offset);
        }
    }

    fn is_end(&self, offset: i64, number: RowNo, slots: &Slots, rows: &RowStore) -> bool {
        let row = rows.get(number);
        if !row.txn_index_empty {
            return false;
        }
        let Some(following) = row.end.checked_add(1) else { return true };
        let Some(after) = slots.get(following) else { return true };
        if slots.above(offset) != Some(following) {
            return true;
        }
        !rows.get(after).txn_index_empty || self.last_of(after, rows) < following
    }

    /// Returns the slot that ends the stretch of the slot of `offset`, when all were looked at.
    pub fn end_from(&self, offset: i64, slots: &Slots) -> Option<(i64, RowNo)> {
        let at = offset.checked_sub(1).and_then(|before| self.ends.above(before)).or(slots.top())?;
        slots.floor(at)
    }

    /// Returns what is wrong, in words.
    pub fn violations(&self, slots: &Slots, rows: &RowStore) -> Vec<String> {
        let name = format!("epoch {}", self.epoch);
        if slots.top().is_none_or(|top| self.looked_to > top) {
            return vec![format!("{name}: stretches were looked for behind the last slot")];
        }
        let mut found = Vec::new();
        if self.ends.iter().any(|(offset, number)| slots.get(offset) != Some(number)) {
            found.push(format!("{name}: a stretch ends where no slot is"));
        }
        let is_missing = |&(offset, number): &(i64, RowNo)| {
            offset < self.looked_to && self.ends.get(offset) != Some(number) && self.is_end(offset, number, slots, rows)
        };
        let missing = slots.iter().filter(is_missing).count();
        if missing > 0 {
            found.push(format!("{name}: {missing} ends of stretches are not known"));
        }
        found
    }

    fn last_of(&self, number: RowNo, rows: &RowStore) -> i64 {
        rows.get(number).range(rows.tail(number), self.epoch).map_or(i64::MIN, |range| range.1)
    }
}
