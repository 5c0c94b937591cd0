//! Numbers by the hash of what they stand for, in tables of bounded size: no growth takes long.
//!
//! The directory says which table has the ids of a hash, by some of its bits. A table that is full
//! is split in two by one more bit; the directory is doubled when none is left over for that.

use hashbrown::HashTable;

use crate::row::RowNo;

/// Numbers in a table at most: as many as 4,096 buckets take.
const NUMBERS_MAX: usize = 3584;
/// Bits of the directory at most, so that ids of one hash cannot make it large.
const BITS_MAX: u32 = 20;
/// The bits of a hash from here on choose the table; the table itself uses others.
const BITS_FROM: u32 = 32;
/// A table is made smaller when it has room for this many times its numbers.
const SPARSE: usize = 16;

struct Table {
    /// How many bits all of its ids have in common.
    bits: u32,
    numbers: HashTable<RowNo>,
}

pub struct IdTables {
    bits: u32,
    directory: Vec<u32>,
    tables: Vec<Table>,
}

impl IdTables {
    pub fn new() -> Self {
        IdTables { bits: 0, directory: vec![0], tables: vec![Table { bits: 0, numbers: HashTable::new() }] }
    }

    #[inline]
    fn index(&self, hash: u64) -> usize {
        let place = (hash >> BITS_FROM) as usize & ((1 << self.bits) - 1);
        self.directory[place] as usize
    }

    #[inline]
    pub fn of(&self, hash: u64) -> &HashTable<RowNo> {
        &self.tables[self.index(hash)].numbers
    }

    /// Removes the number of `hash` that `is_it`; returns whether it was there.
    pub fn remove(&mut self, hash: u64, is_it: impl Fn(RowNo) -> bool, hash_of: impl Fn(RowNo) -> u64) -> bool {
        let index = self.index(hash);
        let numbers = &mut self.tables[index].numbers;
        let Ok(entry) = numbers.find_entry(hash, |&number| is_it(number)) else { return false };
        entry.remove();
        if numbers.len() < numbers.capacity() / SPARSE {
            numbers.shrink_to(numbers.len() * 2, |&number| hash_of(number)); // a walk costs as much as there is room
        }
        true
    }

    pub fn iter(&self) -> impl Iterator<Item = RowNo> + '_ {
        self.tables.iter().flat_map(|table| table.numbers.iter().copied())
    }

    /// Adds a number that is not there yet.
    pub fn insert(&mut self, hash: u64, number: RowNo, hash_of: impl Fn(RowNo) -> u64) {
        let mut index = self.index(hash);
        while self.tables[index].numbers.len() >= NUMBERS_MAX && self.tables[index].bits < BITS_MAX {
            self.split(index, hash, &hash_of);
            index = self.index(hash);
        }
        self.tables[index].numbers.insert_unique(hash, number, |&other| hash_of(other));
    }

    /// Splits a full table, the one of `hash`.
    fn split(&mut self, index: usize, hash: u64, hash_of: impl Fn(RowNo) -> u64) {
        let table = &mut self.tables[index];
        let bit = 1_usize << table.bits;
        table.bits += 1;
        if table.bits > self.bits {
            self.directory.extend_from_within(..);
            self.bits += 1;
        }
        let mut split = Table { bits: table.bits, numbers: HashTable::with_capacity(NUMBERS_MAX / 2) };
        let mut kept = HashTable::with_capacity(NUMBERS_MAX / 2);
        for number in table.numbers.drain() {
            let hash = hash_of(number);
            let is_moved = (hash >> BITS_FROM) as usize & bit != 0;
            let numbers = if is_moved { &mut split.numbers } else { &mut kept };
            numbers.insert_unique(hash, number, |&other| hash_of(other));
        }
        table.numbers = kept;
        let first = (hash >> BITS_FROM) as usize & (bit - 1) | bit;
        let fresh = self.tables.len() as u32;
        for place in self.directory.iter_mut().skip(first).step_by(2 * bit) {
            *place = fresh;
        }
        self.tables.push(split);
    }

    pub fn held_bytes(&self) -> usize {
        self.directory.capacity() * size_of::<u32>()
            + self.tables.capacity() * size_of::<Table>()
            + self.tables.iter().map(|table| table.numbers.allocation_size()).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher;

    use super::*;

    #[test]
    fn every_number_is_found_after_many_splits() {
        let hasher = foldhash::quality::RandomState::default();
        let hash_of = |number: RowNo| hasher.hash_one(number);
        let mut tables = IdTables::new();
        for number in 0..100_000 {
            tables.insert(hash_of(number), number, hash_of);
        }
        assert!(tables.tables.len() > 28);
        assert!(tables.tables.iter().all(|table| table.numbers.len() <= NUMBERS_MAX));
        for number in 0..100_000 {
            let found = tables.of(hash_of(number)).find(hash_of(number), |&other| other == number);
            assert_eq!(found, Some(&number));
        }
        assert_eq!(tables.tables.iter().map(|table| table.numbers.len()).sum::<usize>(), 100_000);
    }

    #[test]
    fn ids_of_one_hash_do_not_make_the_directory_large() {
        let mut tables = IdTables::new();
        for number in 0..10_000 {
            tables.insert(7 << BITS_FROM, number, |_| 7 << BITS_FROM);
        }
        assert_eq!(tables.of(7 << BITS_FROM).len(), 10_000);
    }
}
