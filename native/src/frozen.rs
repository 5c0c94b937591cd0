//! User partitions as they were at one moment: copied in steps, made into state images later.
//!
//! `rlmm/metadata/image.py` describes the bytes. They are canonical: equal state gives equal bytes,
//! whatever engine holds it.

use hashbrown::HashMap;

use crate::bytes::{has_room, put_varint};
use crate::epoch::Epoch;
use crate::image::NO_DELETE;
use crate::partition::{Delete, Partition};
use crate::row::{Row, RowNo};
use crate::row_store::RowStore;

/// There is no memory for a copy or its image.
#[derive(Debug)]
pub struct NoRoom;

/// Memory for each row: its copy with number and tail's end, or its part of an image being made.
const COPY_BYTES: usize = size_of::<Row>() + size_of::<RowNo>() + size_of::<usize>();
const IMAGE_BYTES: usize = 160;

struct FrozenEpoch {
    epoch: i32,
    highest: Option<i64>,
    /// Slots by rising offset.
    offsets: Vec<i64>,
    holders: Vec<RowNo>,
    /// Where its own rows begin: those of which it is the first leader epoch.
    rows_begin: usize,
}

/// How far a leader epoch is copied.
#[derive(Default)]
struct EpochCursor {
    chunk: usize,
    others: Option<std::vec::IntoIter<RowNo>>,
}

#[derive(Default)]
pub struct Frozen {
    pub key: Box<[u8]>,
    delete: Option<Delete>,
    rows: Vec<Row>,
    /// Their numbers in the shard.
    numbers: Vec<RowNo>,
    /// The tails of all rows, one behind the other, and where each one ends.
    tails: Vec<u8>,
    tail_ends: Vec<usize>,
    epochs: Vec<FrozenEpoch>,
    /// Leader epoch and row, where only an earlier first record of the row lists it.
    strays: Vec<(i32, RowNo)>,
    /// The leader epoch that is being copied.
    open: Option<EpochCursor>,
    /// The last leader epoch that is copied.
    copied_to: Option<i32>,
}

impl Frozen {
    pub fn begin(key: &[u8], delete: Option<Delete>, row_count: usize) -> Result<Self, NoRoom> {
        if !has_room(row_count * COPY_BYTES) {
            return Err(NoRoom);
        }
        let mut frozen = Frozen { key: key.into(), delete, ..Frozen::default() };
        frozen.rows.reserve_exact(row_count);
        frozen.numbers.reserve_exact(row_count);
        frozen.tail_ends.reserve_exact(row_count);
        Ok(frozen)
    }

    /// Copies about `left` rows, which counts them; returns whether all is copied. Nothing may
    /// change in between.
    pub fn go_on(&mut self, partition: &Partition, rows: &RowStore, left: &mut usize) -> bool {
        for entry in partition.epochs.above(self.copied_to) {
            if !self.go_on_with(entry, rows, left) {
                return false;
            }
            self.copied_to = Some(entry.epoch);
        }
        self.strays.extend(partition.strays.iter().map(|&(number, epoch)| (epoch, number)));
        true
    }

    /// Copies some more of a leader epoch; returns whether all of it is copied.
    fn go_on_with(&mut self, entry: &Epoch, rows: &RowStore, left: &mut usize) -> bool {
        if *left == 0 {
            return false;
        }
        *left -= 1;
        let mut cursor = self.open.take().unwrap_or_else(|| {
            self.epochs.push(FrozenEpoch {
                epoch: entry.epoch,
                highest: entry.highest,
                offsets: Vec::new(),
                holders: Vec::new(),
                rows_begin: self.rows.len(),
            });
            EpochCursor::default()
        });
        while let Some(slots) = entry.slots.chunk(cursor.chunk) {
            if *left == 0 {
                self.open = Some(cursor);
                return false;
            }
            cursor.chunk += 1;
            if let Some(copy) = self.epochs.last_mut() {
                copy.offsets.extend(slots.iter().map(|slot| slot.pair().0));
                copy.holders.extend(slots.iter().map(|slot| slot.pair().1));
            }
            self.copy(entry.epoch, slots.iter().map(|slot| slot.pair().1), rows);
            *left = left.saturating_sub(slots.len());
        }
        let others = cursor.others.get_or_insert_with(|| entry.unreferenced.iter().collect::<Vec<_>>().into_iter());
        let count = others.len().min(*left);
        self.copy(entry.epoch, others.by_ref().take(count), rows);
        *left -= count;
        let is_copied = others.len() == 0;
        if !is_copied {
            self.open = Some(cursor);
        }
        is_copied
    }

    /// Copies the rows of which `epoch` is the first leader epoch; each row has one.
    fn copy(&mut self, epoch: i32, numbers: impl Iterator<Item = RowNo>, rows: &RowStore) {
        let begin = self.rows.len();
        for number in numbers {
            let row = rows.get(number);
            if row.epoch == epoch {
                self.rows.push(row.clone());
                self.numbers.push(number);
            }
        }
        for (row, &number) in self.rows[begin..].iter().zip(&self.numbers[begin..]) {
            if row.has_tail() {
                self.tails.extend_from_slice(rows.tail(number));
            }
            self.tail_ends.push(self.tails.len());
        }
    }

    fn tail(&self, place: usize) -> &[u8] {
        let begin = place.checked_sub(1).map_or(0, |before| self.tail_ends[before]);
        &self.tails[begin..self.tail_ends[place]]
    }

    /// Returns the places of the rows by rising id.
    fn order(&self) -> Vec<u32> {
        let mut ids: Vec<(u128, u32)> =
            self.rows.iter().zip(0..).map(|(row, place)| (u128::from_be_bytes(row.uuid), place)).collect();
        ids.sort_unstable();
        ids.into_iter().map(|(_, place)| place).collect()
    }

    pub fn image(self) -> Result<Vec<u8>, NoRoom> {
        if !has_room(self.rows.len() * IMAGE_BYTES + self.tails.len()) {
            return Err(NoRoom);
        }
        let order = self.order();
        let mut out = Vec::with_capacity(64 + self.key.len() + self.rows.len() * 100 + self.tails.len());
        put_varint(&mut out, self.key.len() as u64);
        out.extend_from_slice(&self.key);
        match self.delete {
            None => out.push(NO_DELETE),
            Some(delete) => {
                out.push(delete.state);
                out.extend_from_slice(&delete.broker.to_be_bytes());
                out.extend_from_slice(&delete.timestamp.to_be_bytes());
            }
        }
        put_varint(&mut out, order.len() as u64);
        let mut ordinals = vec![0_u64; order.len()];
        for (ordinal, &place) in order.iter().enumerate() {
            let place = place as usize;
            ordinals[place] = ordinal as u64;
            let (row, tail) = (&self.rows[place], self.tail(place));
            out.extend_from_slice(&row.uuid);
            put_varint(&mut out, row.written_len(tail) as u64);
            row.write(tail, &mut out);
        }
        self.write_epochs(&ordinals, &mut out);
        Ok(out)
    }

    fn write_epochs(&self, ordinals: &[u64], out: &mut Vec<u8>) {
        let elsewhere = self.listed_elsewhere();
        let ordinal_of = |number: &RowNo| elsewhere.get(number).map_or(0, |&place| ordinals[place]);
        let mut strays: Vec<(i32, u64)> =
            self.strays.iter().map(|(epoch, number)| (*epoch, ordinal_of(number))).collect();
        strays.sort_unstable();
        put_varint(out, self.epochs.len() as u64);
        for entry in &self.epochs {
            out.extend_from_slice(&entry.epoch.to_be_bytes());
            out.push(u8::from(entry.highest.is_some()));
            if let Some(highest) = entry.highest {
                out.extend_from_slice(&highest.to_be_bytes());
            }
            put_varint(out, entry.offsets.len() as u64);
            let mut own = entry.rows_begin; // its own rows were copied in the order of its slots
            for (offset, number) in entry.offsets.iter().zip(&entry.holders) {
                out.extend_from_slice(&offset.to_be_bytes());
                if self.numbers.get(own) == Some(number) {
                    put_varint(out, ordinals[own]);
                    own += 1;
                } else {
                    put_varint(out, ordinal_of(number));
                }
            }
            let begin = strays.partition_point(|stray| stray.0 < entry.epoch);
            let end = strays.partition_point(|stray| stray.0 <= entry.epoch);
            put_varint(out, (end - begin) as u64);
            for stray in &strays[begin..end] {
                put_varint(out, stray.1);
            }
        }
    }

    /// Returns the places of the rows that other epochs than their first one may list.
    fn listed_elsewhere(&self) -> HashMap<RowNo, usize> {
        let listed = |row: &Row| row.more_epochs > 0 || !self.strays.is_empty();
        self.rows
            .iter()
            .zip(&self.numbers)
            .enumerate()
            .filter(|(_, (row, _))| listed(row))
            .map(|(place, (_, &number))| (number, place))
            .collect()
    }
}
