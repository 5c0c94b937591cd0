//! All user partitions of one shard.

use std::hash::BuildHasher;

use foldhash::quality::RandomState;

use crate::ended::{EndedPartitions, EndedPlace};
use crate::epochs::Epochs;
use crate::frozen::{Frozen, NoRoom};
use crate::id_tables::IdTables;
use crate::partition::{DELETE_OF_PARTITION_FINISHED, Delete, Partition};
use crate::row::{Row, STARTED};
use crate::row_store::{RowStore, Totals};
use crate::verdict::Verdict;

/// Rows of deleted partitions that are freed in one look.
pub const FREED_AT_A_TIME: usize = 64;

/// Rows, or user partitions, that are freed without a thread.
const FREED_AT_ONCE: usize = 10_000;

#[derive(Default)]
struct Doomed {
    partition: u32,
    epochs: Epochs,
}

fn hash_at(partitions: &[Option<Box<Partition>>], hasher: &RandomState, number: u32) -> u64 {
    partitions[number as usize].as_ref().map_or(0, |partition| hasher.hash_one(&*partition.key))
}

/// How far a walk over all user partitions has come.
#[derive(Default)]
pub struct WalkPlace {
    number: usize,
    ended: EndedPlace,
}

pub struct State {
    pub rows: RowStore,
    partitions: Vec<Option<Box<Partition>>>,
    free_numbers: Vec<u32>,
    hasher: RandomState,
    by_key: IdTables,
    key_count: usize,
    ended: EndedPartitions,
    /// Epochs of deleted partitions, whose rows are freed in steps.
    doomed: Vec<Doomed>,
}

impl State {
    pub fn new() -> Self {
        State {
            rows: RowStore::new(),
            partitions: Vec::new(),
            free_numbers: Vec::new(),
            hasher: RandomState::default(),
            by_key: IdTables::new(),
            key_count: 0,
            ended: EndedPartitions::default(),
            doomed: Vec::new(),
        }
    }

    pub fn count(&self) -> usize {
        self.key_count + self.ended.len()
    }

    pub fn partitions(&self) -> impl Iterator<Item = &Partition> {
        self.partitions.iter().flatten().map(Box::as_ref)
    }

    pub fn keys(&self) -> Vec<&[u8]> {
        self.partitions().map(|partition| &*partition.key).chain(self.ended.keys()).collect()
    }

    #[inline]
    pub fn find(&self, key: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one(key);
        let is_it = |&number: &u32| self.at(number).is_some_and(|one| &*one.key == key);
        self.by_key.of(hash).find(hash, is_it).copied()
    }

    #[inline]
    pub fn at(&self, number: u32) -> Option<&Partition> {
        self.partitions.get(number as usize)?.as_deref()
    }

    #[inline]
    pub fn get(&self, key: &[u8]) -> Option<&Partition> {
        self.partitions[self.find(key)? as usize].as_deref()
    }

    #[inline]
    pub fn partition_and_rows(&mut self, number: u32) -> Option<(&mut Partition, &mut RowStore)> {
        self.partitions[number as usize].as_deref_mut().map(|found| (found, &mut self.rows))
    }

    /// Returns the deletion of a partition of which nothing else is left.
    pub fn ended(&self, key: &[u8]) -> Option<Delete> {
        self.ended.get(key)
    }

    /// Returns the number of `key`, which may be new.
    pub fn ensure(&mut self, key: &[u8]) -> u32 {
        if let Some(number) = self.find(key) {
            return number;
        }
        let mut partition = Box::new(Partition::new(key, 0));
        partition.delete = self.ended.remove(key);
        let number = self.place(partition);
        self.keep_key(number);
        number
    }

    fn keep_key(&mut self, number: u32) {
        let (partitions, hasher) = (&self.partitions, &self.hasher);
        let hash_of = |other| hash_at(partitions, hasher, other);
        self.by_key.insert(hash_of(number), number, hash_of);
        self.key_count += 1;
    }

    /// Takes the key of `number` out, while the partition is still there.
    fn forget_key(&mut self, number: u32) {
        let (partitions, hasher) = (&self.partitions, &self.hasher);
        let hash_of = |other| hash_at(partitions, hasher, other);
        if self.by_key.remove(hash_of(number), |other| other == number, hash_of) {
            self.key_count -= 1;
        }
    }

    /// Gives the partition a number that is free.
    fn place(&mut self, mut partition: Box<Partition>) -> u32 {
        let number = self.free_numbers.pop().unwrap_or(self.partitions.len() as u32);
        partition.number = number;
        match self.partitions.get_mut(number as usize) {
            Some(place) => *place = Some(partition),
            None => self.partitions.push(Some(partition)),
        }
        number
    }

    /// Keeps a partition in the short form if only its finished deletion is left.
    pub fn settle(&mut self, number: u32) {
        let Some(partition) = &self.partitions[number as usize] else { return };
        let Some(delete) = partition.delete else { return };
        if delete.state != DELETE_OF_PARTITION_FINISHED || !partition.epochs.is_empty() {
            return;
        }
        self.forget_key(number);
        let Some(partition) = self.partitions[number as usize].take() else { return };
        self.ended.insert(&partition.key, delete);
        self.free_numbers.push(number);
    }

    pub fn put_delete(&mut self, key: &[u8], delete: Delete) -> Verdict {
        let number = self.ensure(key);
        let Some(partition) = &mut self.partitions[number as usize] else { return 0 };
        let (verdict, epochs) = partition.put_delete(delete, &mut self.rows);
        if let Some(epochs) = epochs {
            self.doom(number, epochs);
        }
        let number = self.find(key).unwrap_or(number);
        self.settle(number);
        self.free_some(FREED_AT_A_TIME);
        verdict
    }

    /// Forgets all of `key`, but for the rows, which are freed in steps.
    pub fn drop_partition(&mut self, key: &[u8]) {
        self.ended.remove(key);
        let Some(number) = self.find(key) else { return };
        self.forget_key(number);
        if let Some(mut partition) = self.partitions[number as usize].take() {
            let epochs = partition.clear(&mut self.rows);
            self.doomed.push(Doomed { partition: number, epochs });
        }
        self.free_some(FREED_AT_A_TIME);
    }

    /// Gives the partition another number, so that rows of the former one answer nothing any more.
    fn doom(&mut self, number: u32, epochs: Epochs) {
        if epochs.is_empty() {
            return;
        }
        self.doomed.push(Doomed { partition: number, epochs });
        self.forget_key(number);
        if let Some(partition) = self.partitions[number as usize].take() {
            let fresh = self.place(partition);
            self.keep_key(fresh);
        }
    }

    /// Frees at most `count` rows and leader epochs of what was deleted.
    pub fn free_some(&mut self, mut count: usize) {
        while let Some(doomed) = self.doomed.last_mut() {
            let Some(entry) = doomed.epochs.last_mut() else {
                self.free_numbers.push(doomed.partition);
                self.doomed.pop();
                continue;
            };
            while count > 0 {
                let Some(number) = entry.pop_any() else { break };
                // A row of several epochs is freed with its first one; its number may be in use again.
                let row = self.rows.get(number);
                if row.partition == doomed.partition && row.epoch == entry.epoch {
                    self.rows.remove(number);
                }
                count -= 1;
            }
            if count == 0 {
                return;
            }
            doomed.epochs.drop_last();
            count -= 1;
        }
    }

    /// Begins to copy the user partition at `place`, and moves it on; `Some(None)` where none is,
    /// `None` behind the last place. Nothing may change in between.
    pub fn frozen_at(&self, place: &mut WalkPlace) -> Result<Option<Option<Frozen>>, NoRoom> {
        if let Some(found) = self.partitions.get(place.number) {
            place.number += 1;
            let begun = found.as_ref().map(|one| Frozen::begin(&one.key, one.delete, one.row_count()));
            return begun.transpose().map(Some);
        }
        let ended = self.ended.next(&mut place.ended);
        ended.map(|(key, delete)| Frozen::begin(key, Some(delete), 0).map(Some)).transpose()
    }

    /// Begins to copy one user partition.
    pub fn frozen(&self, key: &[u8]) -> Result<Option<Frozen>, NoRoom> {
        let begun = match self.get(key) {
            Some(one) => Some(Frozen::begin(key, one.delete, one.row_count())),
            None => self.ended(key).map(|delete| Frozen::begin(key, Some(delete), 0)),
        };
        begun.transpose()
    }

    /// Frees a large state in a thread of its own: the caller may be an event loop.
    pub fn free_aside(self) {
        if self.rows.len().max(self.count()) > FREED_AT_ONCE {
            // Where no thread starts, the state is freed here.
            let _ = std::thread::Builder::new().name("rlmm-free".into()).spawn(move || drop(self));
        }
    }

    /// Returns the open copies of user partitions that are there.
    pub fn open_rows(&self) -> impl Iterator<Item = &Row> {
        let is_there = |row: &&Row| self.partitions.get(row.partition as usize).is_some_and(Option::is_some);
        self.rows.open.iter().map(|number| self.rows.get(number)).filter(is_there)
    }

    /// Returns what is wrong with what is derived, in words, with the key of its user partition.
    pub fn violations(&self) -> Vec<(Option<Box<[u8]>>, String)> {
        let (rows, mut found, mut totals, mut open) = (&self.rows, Vec::new(), Totals::default(), 0);
        for partition in self.partitions() {
            let of_epochs = partition.epochs.iter().flat_map(|entry| entry.violations(rows));
            found.extend(of_epochs.map(|fault| (Some(partition.key.clone()), fault)));
            totals.add(partition.counts, partition.size_bytes);
            let started = partition.rows(rows).filter(|&number| rows.get(number).state == STARTED);
            open += started.filter(|&number| rows.open.contains(number)).count();
        }
        if totals != rows.totals {
            found.push((None, format!("{:?} are counted, there are {totals:?}", rows.totals)));
        }
        let noted = self.open_rows().count();
        if noted != open || totals.counts[STARTED as usize] != open as u64 {
            found.push((None, format!("{noted} open copies are noted, there are {open}")));
        }
        found
    }

    pub fn held_bytes(&self) -> usize {
        let of_partition =
            |partition: &Partition| size_of::<Partition>() + partition.key.len() + partition.epochs.held_bytes();
        self.rows.held_bytes()
            + self.by_key.held_bytes()
            + self.ended.held_bytes()
            + self.doomed.iter().map(|doomed| doomed.epochs.held_bytes()).sum::<usize>()
            + self.free_numbers.capacity() * 4
            + self.partitions.capacity() * 8
            + self.partitions().map(of_partition).sum::<usize>()
    }
}
