//! All state of one user partition: its leader epochs and deletion, and the effect of events.

use std::collections::BTreeSet;

use crate::epoch::Epoch;
use crate::epochs::Epochs;
use crate::orders::Orders;
use crate::row::{DELETE_FINISHED, DELETE_STARTED, FINISHED, NewRow, RowNo, STARTED, Tail, Uuid};
use crate::row_store::RowStore;
use crate::verdict::{APPLIED, DUPLICATE, Reason, Remark, Verdict, rejected, remarked};

pub const MARKED: u8 = 0;
pub const DELETE_OF_PARTITION_STARTED: u8 = 1;
pub const DELETE_OF_PARTITION_FINISHED: u8 = 2;

/// The last event of the partition's own deletion.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Delete {
    pub state: u8,
    pub broker: i32,
    pub timestamp: i64,
}

/// What an update states: all that changes in a row.
pub struct Update<'a> {
    pub target: u8,
    pub broker: i32,
    pub timestamp: i64,
    pub custom: Option<&'a [u8]>,
}

/// Rows, and epochs that list them.
pub type Strays = BTreeSet<(RowNo, i32)>;

pub struct Partition {
    /// Name, topic id and partition in canonical record form.
    pub key: Box<[u8]>,
    /// Its number in the rows.
    pub number: u32,
    pub counts: [u32; 3],
    pub size_bytes: i64,
    pub delete: Option<Delete>,
    pub epochs: Epochs,
    /// Epochs that still list a row although its repeated first record no longer names them.
    pub strays: Strays,
    /// Kept up to date only while a reader lists by page.
    pub orders: Option<Box<Orders>>,
}

impl Partition {
    /// Reads its key and its newest leader epoch; several such reads wait for memory together.
    #[inline]
    pub fn touch(&self) -> u64 {
        let ends = self.key.first().zip(self.key.last()).map_or(0, |(first, last)| u64::from(first ^ last));
        ends ^ self.epochs.touch()
    }

    pub fn new(key: &[u8], number: u32) -> Self {
        Partition {
            key: key.into(),
            number,
            counts: [0; 3],
            size_bytes: 0,
            delete: None,
            epochs: Epochs::default(),
            strays: Strays::new(),
            orders: None,
        }
    }

    pub fn row_count(&self) -> usize {
        self.counts.iter().map(|&count| count as usize).sum()
    }

    #[inline]
    pub fn epoch(&self, epoch: i32) -> Option<&Epoch> {
        self.epochs.get(epoch)
    }

    #[inline]
    pub fn epoch_mut(&mut self, epoch: i32) -> Option<&mut Epoch> {
        self.epochs.get_mut(epoch)
    }

    pub fn strays_of(&self, number: RowNo) -> Vec<i32> {
        strays_in(&self.strays, number)
    }

    /// A copy starts: `new` is its first record, in state COPY_SEGMENT_STARTED.
    #[inline]
    pub fn add(&mut self, new: NewRow, rows: &mut RowStore) -> Verdict {
        if let Some(number) = rows.find(self.number, &new.row.uuid) {
            return self.add_again(number, new, rows);
        }
        let size = i64::from(new.row.size);
        let number = rows.insert(new);
        let (first_epoch, is_short) = {
            let row = rows.get(number);
            (row.epoch, row.more_epochs == 0)
        };
        if is_short {
            self.list(number, first_epoch, size);
        } else {
            for (epoch, ..) in rows.get(number).ranges(rows.tail(number)) {
                self.list(number, epoch, size);
            }
        }
        self.size_bytes += size;
        self.counts[STARTED as usize] += 1;
        rows.totals.size_bytes += size;
        rows.totals.counts[STARTED as usize] += 1;
        rows.open.insert(number);
        if let Some(orders) = &mut self.orders {
            orders.added(number, rows, &[]);
        }
        self.verdict_on_add()
    }

    fn list(&mut self, number: RowNo, epoch: i32, size: i64) {
        if self.epochs.get(epoch).is_none() {
            self.epochs.ensure(epoch);
        }
        if let Some(entry) = self.epochs.get_mut(epoch) {
            entry.unreferenced.insert(number);
            entry.size_bytes += size;
        }
    }

    fn verdict_on_add(&self) -> Verdict {
        match self.delete {
            None => APPLIED,
            Some(delete) if delete.state == DELETE_OF_PARTITION_FINISHED => remarked(Remark::PartitionWasDeleted),
            Some(_) => remarked(Remark::PartitionBeingDeleted),
        }
    }

    /// Replaces the metadata by a repeated first record while the copy is open. Every epoch that
    /// listed the id goes on listing it, as in Kafka, even if the new record omits it.
    fn add_again(&mut self, number: RowNo, new: NewRow, rows: &mut RowStore) -> Verdict {
        let current = rows.get(number);
        if current.state != STARTED {
            return rejected(Reason::IllegalTransition, Some(current.state), STARTED);
        }
        if current.same_content(rows.tail(number), &new.row, &new.tail) {
            return DUPLICATE;
        }
        let mut listed: Vec<i32> = current.ranges(rows.tail(number)).map(|range| range.0).collect();
        listed.extend(self.strays_of(number));
        listed.sort_unstable();
        let named: Vec<i32> = new.row.ranges(&new.tail).map(|range| range.0).collect();
        let size = i64::from(new.row.size);
        let growth = size - i64::from(current.size);
        if let Some(orders) = &mut self.orders {
            orders.removed(number, rows);
        }
        let strays: Vec<i32> = listed.iter().copied().filter(|epoch| named.binary_search(epoch).is_err()).collect();
        for &epoch in &listed {
            if let Some(entry) = self.epoch_mut(epoch) {
                entry.size_bytes += growth;
            }
        }
        for &epoch in named.iter().filter(|epoch| listed.binary_search(epoch).is_err()) {
            self.list(number, epoch, size);
        }
        self.forget_strays(number);
        self.strays.extend(strays.into_iter().map(|epoch| (number, epoch)));
        let NewRow { row, tail } = new;
        *rows.get_mut(number) = row;
        rows.set_tail(number, tail);
        self.size_bytes += growth;
        rows.totals.size_bytes += growth;
        if let Some(orders) = &mut self.orders {
            orders.added(number, rows, &strays_in(&self.strays, number));
        }
        self.verdict_on_add()
    }

    fn forget_strays(&mut self, number: RowNo) {
        for epoch in self.strays_of(number) {
            self.strays.remove(&(number, epoch));
        }
    }

    /// Moves a segment on; `offset` is the metadata offset of the event.
    #[inline]
    pub fn update(&mut self, uuid: &Uuid, update: &Update, offset: i64, rows: &mut RowStore) -> Verdict {
        let target = update.target;
        let Some(number) = rows.find(self.number, uuid) else {
            return rejected(Reason::UnknownSegment, None, target);
        };
        let state = rows.get(number).state;
        let is_legal = matches!(
            (state, target),
            (STARTED, STARTED | FINISHED | DELETE_STARTED)
                | (FINISHED, FINISHED | DELETE_STARTED)
                | (DELETE_STARTED, DELETE_STARTED | DELETE_FINISHED)
        );
        if !is_legal {
            return rejected(Reason::IllegalTransition, Some(state), target);
        }
        match target {
            FINISHED => self.finish(number, update, offset, rows),
            DELETE_STARTED => self.start_delete(number, update, rows),
            DELETE_FINISHED => self.finish_delete(number, rows),
            _ => rejected(Reason::UpdateToStarted, Some(state), target),
        }
    }

    /// The copy is there: it takes its slot in every epoch that it names.
    #[inline]
    fn finish(&mut self, number: RowNo, update: &Update, offset: i64, rows: &mut RowStore) -> Verdict {
        let row = rows.get(number);
        let was_started = row.state == STARTED;
        let same_broker = row.broker == update.broker;
        let is_indexed = was_started && !row.txn_index_empty;
        let mut displaced = false;
        let mut take_slot = |entry: Option<&mut Epoch>, first, last| {
            if let Some(entry) = entry {
                displaced |= entry.finish(number, first, last, rows);
                entry.indexed_count += u32::from(is_indexed);
            }
        };
        if row.more_epochs == 0 {
            take_slot(self.epoch_mut(row.epoch), row.first, row.end);
        } else {
            for (epoch, first, last) in row.ranges(rows.tail(number)) {
                take_slot(self.epoch_mut(epoch), first, last);
            }
        }
        let is_same = state_update(number, update, rows);
        rows.get_mut(number).finish = offset;
        if was_started {
            self.counts[STARTED as usize] -= 1;
            self.counts[FINISHED as usize] += 1;
            rows.totals.counts[STARTED as usize] -= 1;
            rows.totals.counts[FINISHED as usize] += 1;
            rows.open.remove(number);
        } else if is_same {
            return DUPLICATE;
        }
        if displaced {
            return remarked(Remark::DisplacedAnotherSegment);
        }
        match was_started && !same_broker {
            true => remarked(Remark::FinishedByAnotherBroker),
            false => APPLIED,
        }
    }

    fn start_delete(&mut self, number: RowNo, update: &Update, rows: &mut RowStore) -> Verdict {
        let row = rows.get(number);
        let state = row.state;
        let is_indexed = state == FINISHED && !row.txn_index_empty;
        for (epoch, first, _) in row.ranges(rows.tail(number)) {
            if let Some(entry) = self.epoch_mut(epoch) {
                entry.unmap(number, first, rows);
                entry.indexed_count -= u32::from(is_indexed);
            }
        }
        let is_same = state_update(number, update, rows);
        self.counts[state as usize] -= 1;
        self.counts[DELETE_STARTED as usize] += 1;
        rows.totals.counts[state as usize] -= 1;
        rows.totals.counts[DELETE_STARTED as usize] += 1;
        rows.open.remove(number);
        if state == DELETE_STARTED && is_same { DUPLICATE } else { APPLIED }
    }

    fn finish_delete(&mut self, number: RowNo, rows: &mut RowStore) -> Verdict {
        let row = rows.get(number);
        let size = i64::from(row.size);
        let mut listed: Vec<i32> = row.ranges(rows.tail(number)).map(|range| range.0).collect();
        listed.extend(self.strays_of(number));
        for epoch in listed {
            if let Some(entry) = self.epoch_mut(epoch) {
                entry.unreferenced.remove(number);
                entry.size_bytes -= size;
                entry.settle();
            }
        }
        if let Some(orders) = &mut self.orders {
            orders.removed(number, rows);
        }
        self.forget_strays(number);
        rows.remove(number);
        self.size_bytes -= size;
        self.counts[DELETE_STARTED as usize] -= 1;
        rows.totals.size_bytes -= size;
        rows.totals.counts[DELETE_STARTED as usize] -= 1;
        APPLIED
    }

    /// Stores a record of the partition's own deletion; every one is stored, as in Kafka. Returns
    /// the epochs whose rows are to be freed, if it ends the partition.
    pub fn put_delete(&mut self, delete: Delete, rows: &mut RowStore) -> (Verdict, Option<Epochs>) {
        let finishes = delete.state == DELETE_OF_PARTITION_FINISHED;
        if self.delete == Some(delete) && (!finishes || self.epochs.is_empty()) {
            return (DUPLICATE, None);
        }
        let verdict = match (self.delete.map(|before| before.state), delete.state) {
            (Some(DELETE_OF_PARTITION_FINISHED), _) => remarked(Remark::PartitionWasDeleted),
            (None | Some(MARKED), MARKED)
            | (Some(MARKED | DELETE_OF_PARTITION_STARTED), DELETE_OF_PARTITION_STARTED)
            | (Some(DELETE_OF_PARTITION_STARTED), DELETE_OF_PARTITION_FINISHED) => APPLIED,
            _ => remarked(Remark::PartitionDeleteOutOfOrder),
        };
        self.delete = Some(delete);
        (verdict, finishes.then(|| self.clear(rows)))
    }

    /// Takes all segments out; their rows are still there.
    pub fn clear(&mut self, rows: &mut RowStore) -> Epochs {
        rows.totals.subtract(self.counts, self.size_bytes);
        self.counts = [0; 3];
        self.size_bytes = 0;
        (self.strays, self.orders) = (Strays::new(), None);
        std::mem::take(&mut self.epochs)
    }

    /// Returns every row, in no order.
    pub fn rows<'a>(&'a self, rows: &'a RowStore) -> impl Iterator<Item = RowNo> + 'a {
        self.epochs
            .iter()
            .flat_map(move |entry| entry.listed().filter(move |&number| rows.get(number).epoch == entry.epoch))
    }

    /// Fills in what an image does not hold.
    pub fn derive(&mut self, numbers: &[RowNo], rows: &mut RowStore) {
        for &number in numbers {
            let row = rows.get(number);
            let size = i64::from(row.size);
            let is_indexed = row.state == FINISHED && !row.txn_index_empty;
            self.counts[row.state as usize] += 1;
            self.size_bytes += size;
            for (epoch, first, _) in row.ranges(rows.tail(number)) {
                if let Some(entry) = self.epoch_mut(epoch) {
                    entry.size_bytes += size;
                    entry.indexed_count += u32::from(is_indexed);
                    if row.state != FINISHED || entry.slots.get(first) != Some(number) {
                        entry.unreferenced.insert(number);
                    }
                }
            }
        }
        for (number, epoch) in self.strays.clone() {
            self.list(number, epoch, i64::from(rows.get(number).size));
        }
        for entry in self.epochs.iter_mut() {
            entry.derive(rows);
        }
        rows.open_all(numbers);
        rows.totals.add(self.counts, self.size_bytes);
    }
}

fn strays_in(strays: &Strays, number: RowNo) -> Vec<i32> {
    match strays.is_empty() {
        true => Vec::new(),
        false => strays.range((number, i32::MIN)..=(number, i32::MAX)).map(|stray| stray.1).collect(),
    }
}

/// Writes what `update` states into the row; returns whether the row said the same.
fn state_update(number: RowNo, update: &Update, rows: &mut RowStore) -> bool {
    let tail = rows.tail(number);
    let row = rows.get(number);
    let is_same_custom = row.custom(tail) == update.custom;
    let is_same = is_same_custom
        && row.state == update.target
        && row.broker == update.broker
        && row.event_timestamp == update.timestamp;
    if !is_same_custom {
        let mut changed: Vec<u8> = crate::row::epochs_of(row, tail).to_vec();
        changed.extend_from_slice(update.custom.unwrap_or_default());
        let changed: Tail = changed.into_boxed_slice();
        rows.set_tail(number, changed);
    }
    let row = rows.get_mut(number);
    row.state = update.target;
    row.broker = update.broker;
    row.event_timestamp = update.timestamp;
    row.has_custom = update.custom.is_some();
    is_same
}
