//! Ended partitions: user partitions of which only the finished deletion is left.
//!
//! They stand packed in chunks of bytes, by rising key: 17 bytes beside the key of each, and no
//! insert moves more than a chunk.

use crate::bytes::Reader;
use crate::partition::Delete;

/// Bytes of a deletion behind a key.
const DELETE_BYTES: usize = 13;
/// A chunk that is longer is cut in two, unless it has one entry.
const CHUNK_BYTES_MAX: usize = 4_096;

/// No chunk is empty.
#[derive(Default)]
pub struct EndedPartitions {
    chunks: Vec<Chunk>,
    count: usize,
}

/// How far a walk over the partitions has come; no change may be made in between.
#[derive(Default)]
pub struct EndedPlace {
    chunk: usize,
    number: usize,
}

#[derive(Default)]
struct Chunk {
    bytes: Vec<u8>,
    /// Where each entry ends in `bytes`.
    ends: Vec<u32>,
}

impl Chunk {
    fn begin_of(&self, number: usize) -> usize {
        number.checked_sub(1).map_or(0, |before| self.ends[before] as usize)
    }

    fn entry(&self, number: usize) -> &[u8] {
        &self.bytes[self.begin_of(number)..self.ends[number] as usize]
    }

    fn key(&self, number: usize) -> &[u8] {
        let entry = self.entry(number);
        &entry[..entry.len() - DELETE_BYTES]
    }

    /// Returns the number of `key`, or the one that it would get.
    fn place(&self, key: &[u8]) -> Result<usize, usize> {
        let (mut low, mut high) = (0, self.ends.len());
        while low < high {
            let middle = (low + high) / 2;
            match self.key(middle).cmp(key) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Ok(middle),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    fn insert(&mut self, number: usize, entry: &[u8]) {
        let begin = self.begin_of(number);
        if self.bytes.capacity() - self.bytes.len() < entry.len() {
            self.bytes.reserve_exact(entry.len().max(self.bytes.len() / 8));
        }
        if self.ends.capacity() == self.ends.len() {
            self.ends.reserve_exact((self.ends.len() / 8).max(1));
        }
        self.bytes.splice(begin..begin, entry.iter().copied());
        self.ends.insert(number, begin as u32);
        for end in &mut self.ends[number..] {
            *end += entry.len() as u32;
        }
    }

    fn remove(&mut self, number: usize) {
        let range = self.begin_of(number)..self.ends[number] as usize;
        let size = range.len() as u32;
        self.bytes.drain(range);
        self.ends.remove(number);
        for end in &mut self.ends[number..] {
            *end -= size;
        }
    }

    fn split(&mut self) -> Chunk {
        let middle = self.ends.len() / 2;
        let at = self.begin_of(middle);
        let bytes = self.bytes.split_off(at);
        let ends = self.ends.split_off(middle).iter().map(|end| end - at as u32).collect();
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
        Chunk { bytes, ends }
    }
}

impl EndedPartitions {
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns the partition at `place`, and moves it on; `None` behind the last one.
    pub fn next(&self, place: &mut EndedPlace) -> Option<(&[u8], Delete)> {
        let chunk = self.chunks.get(place.chunk)?;
        let number = place.number;
        place.number += 1;
        if place.number == chunk.ends.len() {
            *place = EndedPlace { chunk: place.chunk + 1, number: 0 };
        }
        Some((chunk.key(number), delete_of(chunk.entry(number))?))
    }

    pub fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.chunks.iter().flat_map(|chunk| (0..chunk.ends.len()).map(|number| chunk.key(number)))
    }

    fn home(&self, key: &[u8]) -> usize {
        self.chunks.partition_point(|chunk| chunk.key(0) <= key).saturating_sub(1)
    }

    pub fn get(&self, key: &[u8]) -> Option<Delete> {
        let chunk = self.chunks.get(self.home(key))?;
        delete_of(chunk.entry(chunk.place(key).ok()?))
    }

    /// Adds a partition that is not there.
    pub fn insert(&mut self, key: &[u8], delete: Delete) {
        let mut entry = key.to_vec();
        entry.push(delete.state);
        entry.extend_from_slice(&delete.broker.to_be_bytes());
        entry.extend_from_slice(&delete.timestamp.to_be_bytes());
        let home = self.home(key);
        if self.chunks.is_empty() {
            self.chunks.push(Chunk::default());
        }
        let chunk = &mut self.chunks[home];
        let Err(number) = chunk.place(key) else { return };
        chunk.insert(number, &entry);
        self.count += 1;
        if chunk.bytes.len() > CHUNK_BYTES_MAX && chunk.ends.len() > 1 {
            let upper = chunk.split();
            self.chunks.insert(home + 1, upper);
        }
    }

    pub fn remove(&mut self, key: &[u8]) -> Option<Delete> {
        let home = self.home(key);
        let chunk = self.chunks.get_mut(home)?;
        let number = chunk.place(key).ok()?;
        let delete = delete_of(chunk.entry(number));
        chunk.remove(number);
        self.count -= 1;
        if chunk.ends.is_empty() {
            self.chunks.remove(home);
        }
        delete
    }

    pub fn held_bytes(&self) -> usize {
        let of_chunk = |chunk: &Chunk| chunk.bytes.capacity() + chunk.ends.capacity() * 4;
        self.chunks.capacity() * size_of::<Chunk>() + self.chunks.iter().map(of_chunk).sum::<usize>()
    }
}

fn delete_of(entry: &[u8]) -> Option<Delete> {
    let mut reader = Reader::new(&entry[entry.len() - DELETE_BYTES..]);
    Some(Delete { state: reader.u8()?, broker: reader.i32()?, timestamp: reader.i64()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u32) -> Vec<u8> {
        let mut key = vec![b'k'; 36];
        key.extend_from_slice(&number.to_be_bytes());
        key
    }

    fn delete(number: u32) -> Delete {
        Delete { state: 2, broker: number as i32, timestamp: i64::from(number) - 7 }
    }

    /// Whatever the order, each costs less than a hundred bytes, and no insert moves many.
    #[test]
    fn many_ended_partitions_take_few_bytes() {
        const COUNT: u32 = 50_000;
        let scattered: Vec<u32> =
            (0..COUNT).map(|number| (u64::from(number) * 7_919 % u64::from(COUNT)) as u32).collect();
        for order in [(0..COUNT).collect(), (0..COUNT).rev().collect(), scattered] {
            let mut ended = EndedPartitions::default();
            for &number in &order {
                ended.insert(&key(number), delete(number));
            }
            assert_eq!(ended.len(), COUNT as usize);
            assert!(ended.held_bytes() < 100 * COUNT as usize, "{}", ended.held_bytes());
            assert!(ended.chunks.iter().all(|chunk| chunk.bytes.len() <= CHUNK_BYTES_MAX));
            assert!(ended.keys().eq((0..COUNT).map(key).collect::<Vec<_>>().iter().map(Vec::as_slice)));
            let mut place = EndedPlace::default();
            for number in 0..COUNT {
                assert!(ended.next(&mut place) == Some((&*key(number), delete(number))));
            }
            assert!(ended.next(&mut place).is_none());
            for &number in &order {
                assert!(ended.get(&key(number)) == Some(delete(number)));
            }
            assert!(ended.get(&key(COUNT)).is_none() && ended.get(b"").is_none());
            for &number in order.iter().filter(|&number| number % 3 != 0) {
                assert!(ended.remove(&key(number)) == Some(delete(number)));
                assert!(ended.remove(&key(number)).is_none());
            }
            assert!(ended.keys().eq((0..COUNT).step_by(3).map(key).collect::<Vec<_>>().iter().map(Vec::as_slice)));
            for number in (0..COUNT).step_by(3) {
                assert!(ended.remove(&key(number)) == Some(delete(number)));
            }
            assert!(ended.chunks.is_empty());
        }
    }

    #[test]
    fn long_keys_have_chunks_of_their_own() {
        let mut ended = EndedPartitions::default();
        for number in [3, 1, 2] {
            ended.insert(&vec![number; 10_000], delete(number.into()));
        }
        assert_eq!(ended.chunks.len(), 3);
        assert!(ended.get(&[2; 10_000]) == Some(delete(2)));
    }
}
