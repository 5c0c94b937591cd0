//! All user partitions of one shard.

use std::hash::BuildHasher;

use foldhash::quality::RandomState;
use hashbrown::HashTable;

use crate::epoch::Epoch;
use crate::frozen::Frozen;
use crate::partition::{DELETE_OF_PARTITION_FINISHED, Delete, Partition};
use crate::row_store::RowStore;
use crate::verdict::Verdict;

/// Bytes of a deletion behind the key of an ended partition.
const DELETE_BYTES: usize = 13;

/// Rows that are freed without a thread.
const FREED_AT_ONCE: usize = 10_000;

#[derive(Default)]
struct Doomed {
    partition: u32,
    epochs: Vec<Epoch>,
}

pub struct State {
    pub rows: RowStore,
    partitions: Vec<Option<Box<Partition>>>,
    free_numbers: Vec<u32>,
    hasher: RandomState,
    by_key: HashTable<(u64, u32)>,
    /// Key and deletion of partitions of which nothing else is left.
    ended: HashTable<Box<[u8]>>,
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
            by_key: HashTable::new(),
            ended: HashTable::new(),
            doomed: Vec::new(),
        }
    }

    pub fn count(&self) -> usize {
        self.by_key.len() + self.ended.len()
    }

    pub fn partitions(&self) -> impl Iterator<Item = &Partition> {
        self.partitions.iter().flatten().map(Box::as_ref)
    }

    pub fn keys(&self) -> Vec<&[u8]> {
        let ended = self.ended.iter().map(|one| &one[..one.len() - DELETE_BYTES]);
        self.partitions().map(|partition| &*partition.key).chain(ended).collect()
    }

    #[inline]
    pub fn find(&self, key: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one(key);
        let is_it = |&(other, number): &(u64, u32)| {
            other == hash && self.partitions[number as usize].as_ref().is_some_and(|one| &*one.key == key)
        };
        self.by_key.find(hash, is_it).map(|found| found.1)
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
        let hash = self.hasher.hash_one(key);
        self.ended.find(hash, |one| key_of(one) == key).map(|one| delete_of(one))
    }

    /// Returns the number of `key`, which may be new.
    pub fn ensure(&mut self, key: &[u8]) -> u32 {
        if let Some(number) = self.find(key) {
            return number;
        }
        let hash = self.hasher.hash_one(key);
        let mut partition = Box::new(Partition::new(key, 0));
        if let Ok(entry) = self.ended.find_entry(hash, |one| key_of(one) == key) {
            partition.delete = Some(delete_of(&entry.remove().0));
        }
        let number = self.free_numbers.pop().unwrap_or(self.partitions.len() as u32);
        partition.number = number;
        if number as usize == self.partitions.len() {
            self.partitions.push(Some(partition));
        } else {
            self.partitions[number as usize] = Some(partition);
        }
        self.by_key.insert_unique(hash, (hash, number), |entry| entry.0);
        number
    }

    /// Keeps a partition in the short form if only its finished deletion is left.
    pub fn settle(&mut self, number: u32) {
        let Some(partition) = &self.partitions[number as usize] else { return };
        let Some(delete) = partition.delete else { return };
        if delete.state != DELETE_OF_PARTITION_FINISHED || !partition.epochs.is_empty() {
            return;
        }
        let mut ended = partition.key.to_vec();
        ended.push(delete.state);
        ended.extend_from_slice(&delete.broker.to_be_bytes());
        ended.extend_from_slice(&delete.timestamp.to_be_bytes());
        let hasher = &self.hasher;
        let hash = hasher.hash_one(&*partition.key);
        if let Ok(entry) = self.by_key.find_entry(hash, |entry| entry.1 == number) {
            entry.remove();
        }
        self.ended.insert_unique(hash, ended.into_boxed_slice(), |one| hasher.hash_one(key_of(one)));
        self.partitions[number as usize] = None;
        self.free_numbers.push(number);
    }

    pub fn put_delete(&mut self, key: &[u8], delete: Delete) -> Verdict {
        let number = self.ensure(key);
        let Some(partition) = &mut self.partitions[number as usize] else { return 0 };
        let (verdict, epochs) = partition.put_delete(delete);
        if let Some(epochs) = epochs {
            self.doom(number, epochs);
        }
        let number = self.find(key).unwrap_or(number);
        self.settle(number);
        verdict
    }

    /// Forgets all of `key`, but for the rows, which are freed in steps.
    pub fn drop_partition(&mut self, key: &[u8]) {
        let hash = self.hasher.hash_one(key);
        if let Ok(entry) = self.ended.find_entry(hash, |one| key_of(one) == key) {
            entry.remove();
        }
        let Some(number) = self.find(key) else { return };
        if let Ok(entry) = self.by_key.find_entry(hash, |entry| entry.1 == number) {
            entry.remove();
        }
        if let Some(partition) = self.partitions[number as usize].take() {
            self.doomed.push(Doomed { partition: number, epochs: partition.epochs });
        }
    }

    /// Gives the partition another number, so that rows of the former one answer nothing any more.
    fn doom(&mut self, number: u32, epochs: Vec<Epoch>) {
        if epochs.is_empty() {
            return;
        }
        self.doomed.push(Doomed { partition: number, epochs });
        let Some(mut partition) = self.partitions[number as usize].take() else { return };
        let hash = self.hasher.hash_one(&*partition.key);
        let fresh = self.partitions.len() as u32;
        partition.number = fresh;
        self.partitions.push(Some(partition));
        if let Ok(mut entry) = self.by_key.find_entry(hash, |entry| entry.1 == number) {
            entry.get_mut().1 = fresh;
        }
    }

    /// Frees at most `count` rows of what was deleted.
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
            doomed.epochs.pop();
        }
    }

    /// Returns how many places `frozen_at` knows.
    pub fn places(&self) -> usize {
        self.partitions.len() + self.ended.num_buckets()
    }

    /// Begins to copy the user partition at a place; some have none.
    pub fn frozen_at(&self, place: usize) -> Option<Frozen> {
        match self.partitions.get(place) {
            Some(found) => found.as_ref().map(|one| Frozen::begin(&one.key, one.delete, one.row_count())),
            None => {
                let ended = self.ended.get_bucket(place - self.partitions.len())?;
                Some(Frozen::begin(key_of(ended), Some(delete_of(ended)), 0))
            }
        }
    }

    /// Begins to copy one user partition.
    pub fn frozen(&self, key: &[u8]) -> Option<Frozen> {
        match self.get(key) {
            Some(one) => Some(Frozen::begin(key, one.delete, one.row_count())),
            None => Some(Frozen::begin(key, Some(self.ended(key)?), 0)),
        }
    }

    /// Frees a large state in a thread of its own: the caller may be an event loop.
    pub fn free_aside(self) {
        if self.rows.len() > FREED_AT_ONCE {
            // Where no thread starts, the state is freed here.
            let _ = std::thread::Builder::new().name("rlmm-free".into()).spawn(move || drop(self));
        }
    }

    pub fn held_bytes(&self) -> usize {
        let of_epoch = |epoch: &Epoch| size_of::<Epoch>() + epoch.slots.held_bytes();
        let of_partition = |partition: &Partition| {
            size_of::<Partition>() + partition.key.len() + partition.epochs.iter().map(of_epoch).sum::<usize>()
        };
        self.rows.held_bytes()
            + self.by_key.allocation_size()
            + self.ended.allocation_size()
            + self.partitions.capacity() * 8
            + self.partitions().map(of_partition).sum::<usize>()
    }
}

fn key_of(ended: &[u8]) -> &[u8] {
    &ended[..ended.len() - DELETE_BYTES]
}

fn delete_of(ended: &[u8]) -> Delete {
    let mut reader = crate::bytes::Reader::new(&ended[ended.len() - DELETE_BYTES..]);
    Delete {
        state: reader.u8().unwrap_or(0),
        broker: reader.i32().unwrap_or(0),
        timestamp: reader.i64().unwrap_or(0),
    }
}
