//! All rows of a shard, by number and by segment id.
//!
//! Rows stand in blocks that never move, ids and tails in many small tables: no growth takes long.

use std::hash::BuildHasher;

use foldhash::quality::RandomState;
use hashbrown::HashTable;

use crate::id_tables::IdTables;
use crate::row::{NewRow, Row, RowNo, STARTED, Tail, Uuid};
use crate::row_set::RowSet;

const BLOCK_ROWS: usize = 512;
/// Rows whose tails stand in one table.
const TAIL_ROWS: usize = 8192;

/// Of all user partitions that are not deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Segments by state.
    pub counts: [u64; 3],
    pub size_bytes: i64,
}

impl Totals {
    pub fn add(&mut self, counts: [u32; 3], size_bytes: i64) {
        for (total, count) in self.counts.iter_mut().zip(counts) {
            *total += u64::from(count);
        }
        self.size_bytes += size_bytes;
    }

    pub fn subtract(&mut self, counts: [u32; 3], size_bytes: i64) {
        for (total, count) in self.counts.iter_mut().zip(counts) {
            *total -= u64::from(count);
        }
        self.size_bytes -= size_bytes;
    }
}

pub struct RowStore {
    pub totals: Totals,
    /// Copies that are open, also those of deleted partitions until they are freed.
    pub open: RowSet,
    blocks: Vec<Vec<Row>>,
    free: Vec<RowNo>,
    count: usize,
    hasher: RandomState,
    ids: IdTables,
    tails: Vec<HashTable<(RowNo, Tail)>>,
}

impl RowStore {
    pub fn new() -> Self {
        RowStore {
            totals: Totals::default(),
            open: RowSet::default(),
            blocks: Vec::new(),
            free: Vec::new(),
            count: 0,
            hasher: RandomState::default(), // drawn anew: no stranger can choose ids that collide
            ids: IdTables::new(),
            tails: Vec::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.count - self.free.len()
    }

    #[inline]
    pub fn get(&self, number: RowNo) -> &Row {
        let number = number as usize;
        &self.blocks[number / BLOCK_ROWS][number % BLOCK_ROWS]
    }

    #[inline]
    pub fn get_mut(&mut self, number: RowNo) -> &mut Row {
        let number = number as usize;
        &mut self.blocks[number / BLOCK_ROWS][number % BLOCK_ROWS]
    }

    /// Reads both ends of a row; several such reads wait for memory together.
    #[inline]
    pub fn touch(&self, number: RowNo) -> u64 {
        let row = self.get(number);
        row.finish as u64 ^ u64::from(row.state)
    }

    /// Returns the tail of a row; empty for nearly all.
    #[inline]
    pub fn tail(&self, number: RowNo) -> &[u8] {
        if !self.get(number).has_tail() {
            return &[];
        }
        let hash = self.hasher.hash_one(number);
        let table = self.tails.get(number as usize / TAIL_ROWS);
        table.and_then(|table| table.find(hash, |(no, _)| *no == number)).map_or(&[], |(_, tail)| tail)
    }

    #[inline]
    fn hash_of(&self, partition: u32, uuid: &Uuid) -> u64 {
        self.hasher.hash_one((partition, uuid))
    }

    #[inline]
    pub fn find(&self, partition: u32, uuid: &Uuid) -> Option<RowNo> {
        let hash = self.hash_of(partition, uuid);
        self.ids
            .of(hash)
            .find(hash, |&number| {
                let row = self.get(number);
                row.uuid == *uuid && row.partition == partition
            })
            .copied()
    }

    /// Adds a row whose id is not there yet.
    pub fn insert(&mut self, new: NewRow) -> RowNo {
        let NewRow { row, tail } = new;
        let hash = self.hash_of(row.partition, &row.uuid);
        let number = match self.free.pop() {
            Some(number) => {
                *self.get_mut(number) = row;
                number
            }
            None => self.push(row),
        };
        let (blocks, hasher) = (&self.blocks, &self.hasher);
        self.ids.insert(hash, number, |other| {
            let row = &blocks[other as usize / BLOCK_ROWS][other as usize % BLOCK_ROWS];
            hasher.hash_one((row.partition, &row.uuid))
        });
        if !tail.is_empty() {
            self.set_tail(number, tail); // a row that was removed has left none
        }
        number
    }

    fn push(&mut self, row: Row) -> RowNo {
        let number = self.count;
        if number % BLOCK_ROWS == 0 {
            self.blocks.push(Vec::with_capacity(BLOCK_ROWS));
        }
        self.blocks[number / BLOCK_ROWS].push(row);
        self.count += 1;
        number as RowNo
    }

    pub fn set_tail(&mut self, number: RowNo, tail: Tail) {
        let hasher = &self.hasher;
        let hash = hasher.hash_one(number);
        let at = number as usize / TAIL_ROWS;
        if at >= self.tails.len() {
            if tail.is_empty() {
                return;
            }
            self.tails.resize_with(at + 1, HashTable::new);
        }
        let table = &mut self.tails[at];
        match table.find_entry(hash, |(no, _)| *no == number) {
            Ok(entry) if tail.is_empty() => drop(entry.remove()),
            Ok(mut entry) => entry.get_mut().1 = tail,
            Err(_) if tail.is_empty() => (),
            Err(_) => {
                table.insert_unique(hash, (number, tail), |(no, _)| hasher.hash_one(no));
            }
        }
    }

    /// Notes which of `numbers` are open copies.
    pub fn open_all(&mut self, numbers: &[RowNo]) {
        for &number in numbers {
            if self.get(number).state == STARTED {
                self.open.insert(number);
            }
        }
    }

    pub fn remove(&mut self, number: RowNo) {
        let (partition, uuid, state) = {
            let row = self.get(number);
            (row.partition, row.uuid, row.state)
        };
        if state == STARTED {
            self.open.remove(number);
        }
        let hash = self.hash_of(partition, &uuid);
        if self.get(number).has_tail() {
            self.set_tail(number, Tail::default());
        }
        let (blocks, hasher) = (&self.blocks, &self.hasher);
        let hash_of = |other: RowNo| {
            let row = &blocks[other as usize / BLOCK_ROWS][other as usize % BLOCK_ROWS];
            hasher.hash_one((row.partition, &row.uuid))
        };
        if self.ids.remove(hash, |other| other == number, hash_of) {
            self.free.push(number);
        }
    }

    /// Returns the heap bytes that are held, but for tails.
    pub fn held_bytes(&self) -> usize {
        self.blocks.len() * BLOCK_ROWS * size_of::<Row>()
            + self.ids.held_bytes()
            + self.tails.iter().map(HashTable::allocation_size).sum::<usize>()
            + self.open.held_bytes()
    }
}
