//! The leader epochs of one user partition, by rising epoch, in chunks of bounded length.
//!
//! Nearly every user partition has few, and they stand in `top`. No chunk is empty, but for `top`
//! where there is no epoch at all.

use crate::epoch::Epoch;

const CHUNK_MAX: usize = 64;

#[derive(Default)]
pub struct Epochs {
    /// Chunks below `top`.
    lower: Vec<Vec<Epoch>>,
    top: Vec<Epoch>,
}

impl Epochs {
    pub fn is_empty(&self) -> bool {
        self.top.is_empty()
    }

    #[inline]
    pub fn touch(&self) -> u64 {
        self.top.last().map_or(0, Epoch::touch)
    }

    pub fn len(&self) -> usize {
        self.chunks().map(Vec::len).sum()
    }

    fn chunks(&self) -> impl Iterator<Item = &Vec<Epoch>> {
        self.lower.iter().chain(std::iter::once(&self.top))
    }

    /// Returns which chunk of `lower` has `epoch`, or would get it; `None` for `top`.
    #[inline]
    fn home(&self, epoch: i32) -> Option<usize> {
        if self.lower.is_empty() || self.top.first().is_some_and(|first| first.epoch <= epoch) {
            return None;
        }
        let behind = self.lower.partition_point(|chunk| chunk.first().is_some_and(|first| first.epoch <= epoch));
        Some(behind.saturating_sub(1))
    }

    #[inline]
    pub fn get(&self, epoch: i32) -> Option<&Epoch> {
        let chunk = match self.home(epoch) {
            None => &self.top,
            Some(number) => self.lower.get(number)?,
        };
        chunk.get(place(chunk, epoch).ok()?)
    }

    #[inline]
    pub fn get_mut(&mut self, epoch: i32) -> Option<&mut Epoch> {
        let chunk = match self.home(epoch) {
            None => &mut self.top,
            Some(number) => self.lower.get_mut(number)?,
        };
        let at = place(chunk, epoch).ok()?;
        chunk.get_mut(at)
    }

    /// Adds `epoch` if it is not there.
    pub fn ensure(&mut self, epoch: i32) {
        let home = self.home(epoch);
        let chunk = match home {
            None => &mut self.top,
            Some(number) => &mut self.lower[number],
        };
        let Err(at) = place(chunk, epoch) else { return };
        if home.is_none() && at == chunk.len() {
            self.append(Epoch::new(epoch));
        } else if chunk.len() < CHUNK_MAX {
            grow(chunk);
            chunk.insert(at, Epoch::new(epoch));
        } else {
            let upper = chunk.split_off(CHUNK_MAX / 2);
            chunk.shrink_to_fit();
            match home {
                None => self.lower.push(std::mem::replace(&mut self.top, upper)),
                Some(number) => self.lower.insert(number + 1, upper),
            }
            self.ensure(epoch);
        }
    }

    /// Adds an epoch above all others.
    pub fn append(&mut self, entry: Epoch) {
        if self.top.len() >= CHUNK_MAX {
            self.lower.push(std::mem::take(&mut self.top));
        }
        grow(&mut self.top);
        self.top.push(entry);
    }

    pub fn last_mut(&mut self) -> Option<&mut Epoch> {
        self.top.last_mut()
    }

    pub fn drop_last(&mut self) {
        self.top.pop();
        if self.top.is_empty() {
            self.top = self.lower.pop().unwrap_or_default();
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Epoch> {
        self.chunks().flatten()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Epoch> {
        self.lower.iter_mut().flatten().chain(&mut self.top)
    }

    /// Returns the epochs above `epoch`; all of them for `None`.
    pub fn above(&self, epoch: Option<i32>) -> impl Iterator<Item = &Epoch> {
        let begin = match epoch.map(|epoch| self.home(epoch)) {
            None => 0,
            Some(home) => home.unwrap_or(self.lower.len()),
        };
        let chunks = self.lower[begin..].iter().chain(std::iter::once(&self.top));
        chunks.flatten().skip_while(move |entry| epoch.is_some_and(|epoch| entry.epoch <= epoch))
    }

    pub fn held_bytes(&self) -> usize {
        let entries: usize = self.chunks().map(Vec::capacity).sum();
        self.lower.capacity() * size_of::<Vec<Epoch>>()
            + entries * size_of::<Epoch>()
            + self.iter().map(Epoch::held_bytes).sum::<usize>()
    }
}

#[inline]
fn place(chunk: &[Epoch], epoch: i32) -> Result<usize, usize> {
    match chunk.last() {
        Some(last) if last.epoch == epoch => Ok(chunk.len() - 1),
        _ => chunk.binary_search_by_key(&epoch, |one| one.epoch),
    }
}

/// Makes room for one more, in small steps: an epoch is large, and most partitions have one or two.
fn grow(chunk: &mut Vec<Epoch>) {
    if chunk.len() == chunk.capacity() {
        chunk.reserve_exact((chunk.len() / 8).max(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(numbers: impl Iterator<Item = i32>) -> Epochs {
        let mut epochs = Epochs::default();
        for number in numbers {
            epochs.ensure(number);
            epochs.ensure(number);
        }
        epochs
    }

    fn numbers(epochs: &Epochs) -> Vec<i32> {
        epochs.iter().map(|entry| entry.epoch).collect()
    }

    /// Whatever the order, no insert moves more than a chunk, and memory is used well.
    #[test]
    fn many_epochs_stand_in_bounded_chunks() {
        const COUNT: i32 = 100_000;
        let scattered = (0..COUNT).map(|number| (i64::from(number) * 7_919 % i64::from(COUNT)) as i32);
        for epochs in [filled(0..COUNT), filled((0..COUNT).rev()), filled(scattered)] {
            assert_eq!(numbers(&epochs), (0..COUNT).collect::<Vec<_>>());
            assert_eq!(epochs.len(), COUNT as usize);
            assert!(epochs.chunks().all(|chunk| chunk.len() <= CHUNK_MAX));
            assert!(epochs.lower.iter().all(|chunk| chunk.len() >= CHUNK_MAX / 2));
            assert!(epochs.held_bytes() < COUNT as usize * 100, "{} bytes", epochs.held_bytes());
            assert!((0..COUNT).all(|number| epochs.get(number).is_some_and(|entry| entry.epoch == number)));
            assert!(epochs.get(-1).is_none() && epochs.get(COUNT).is_none());
            for after in [i32::MIN, -1, 0, 31, 32, 63, 64, 50_000, COUNT - 1, COUNT, i32::MAX] {
                let first = epochs.above(Some(after)).next().map(|entry| entry.epoch);
                assert_eq!(first, Some((after.max(-1)).saturating_add(1)).filter(|&next| next < COUNT));
            }
            assert_eq!(epochs.above(None).count(), COUNT as usize);
        }
    }

    #[test]
    fn few_epochs_take_no_spare_room() {
        for count in 1..=8 {
            let epochs = filled(0..count);
            assert_eq!((epochs.top.capacity(), epochs.lower.capacity()), (count as usize, 0));
        }
    }

    #[test]
    fn epochs_are_dropped_from_the_last_on() {
        let mut epochs = filled((0..1_000).rev());
        for left in (0..1_000).rev() {
            assert_eq!(epochs.last_mut().map(|entry| entry.epoch), Some(left));
            epochs.drop_last();
        }
        assert!(epochs.is_empty() && epochs.lower.is_empty());
    }
}
