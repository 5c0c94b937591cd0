//! A set of rows that nearly always has few.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;

use crate::id_tables::IdTables;
use crate::row::RowNo;

const FEW_MAX: usize = 24;

pub struct ManyRows {
    numbers: IdTables,
    count: usize,
    hasher: RandomState,
}

impl ManyRows {
    fn of(rows: &[RowNo]) -> Self {
        let mut many = ManyRows { numbers: IdTables::new(), count: 0, hasher: RandomState::default() };
        for &row in rows {
            many.insert(row);
        }
        many
    }

    fn contains(&self, row: RowNo) -> bool {
        let hash = self.hasher.hash_one(row);
        self.numbers.of(hash).find(hash, |&one| one == row).is_some()
    }

    fn insert(&mut self, row: RowNo) {
        if !self.contains(row) {
            let hasher = &self.hasher;
            self.numbers.insert(hasher.hash_one(row), row, |one| hasher.hash_one(one));
            self.count += 1;
        }
    }

    fn remove(&mut self, row: RowNo) -> bool {
        let hasher = &self.hasher;
        let was_there = self.numbers.remove(hasher.hash_one(row), |one| one == row, |one| hasher.hash_one(one));
        self.count -= usize::from(was_there);
        was_there
    }
}

pub enum RowSet {
    Few(Vec<RowNo>),
    Many(Box<ManyRows>),
}

impl Default for RowSet {
    fn default() -> Self {
        RowSet::Few(Vec::new())
    }
}

impl RowSet {
    pub fn insert(&mut self, row: RowNo) {
        match self {
            RowSet::Few(rows) => {
                if rows.contains(&row) {
                    return;
                }
                if rows.len() < FEW_MAX {
                    rows.push(row);
                    return;
                }
                let mut many = ManyRows::of(rows);
                many.insert(row);
                *self = RowSet::Many(Box::new(many));
            }
            RowSet::Many(rows) => rows.insert(row),
        }
    }

    /// Removes `row`; returns whether it was there.
    pub fn remove(&mut self, row: RowNo) -> bool {
        match self {
            RowSet::Few(rows) => {
                let Some(at) = rows.iter().position(|&one| one == row) else { return false };
                rows.swap_remove(at);
                true
            }
            RowSet::Many(rows) => {
                let was_there = rows.remove(row);
                if rows.count == 0 {
                    *self = RowSet::default();
                }
                was_there
            }
        }
    }

    pub fn pop(&mut self) -> Option<RowNo> {
        let row = match self {
            RowSet::Few(rows) => return rows.pop(),
            RowSet::Many(rows) => rows.numbers.iter().next()?,
        };
        self.remove(row);
        Some(row)
    }

    pub fn contains(&self, row: RowNo) -> bool {
        match self {
            RowSet::Few(rows) => rows.contains(&row),
            RowSet::Many(rows) => rows.contains(row),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn len(&self) -> usize {
        match self {
            RowSet::Few(rows) => rows.len(),
            RowSet::Many(rows) => rows.count,
        }
    }

    pub fn held_bytes(&self) -> usize {
        match self {
            RowSet::Few(rows) => rows.capacity() * size_of::<RowNo>(),
            RowSet::Many(rows) => rows.numbers.held_bytes() + size_of_val(&**rows),
        }
    }

    pub fn iter(&self) -> Box<dyn Iterator<Item = RowNo> + '_> {
        match self {
            RowSet::Few(rows) => Box::new(rows.iter().copied()),
            RowSet::Many(rows) => Box::new(rows.numbers.iter()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_set_of_many_rows_holds_what_was_inserted_and_not_removed() {
        let (mut set, mut model) = (RowSet::default(), BTreeSet::new());
        for step in 0..200_000_u32 {
            let row = step.wrapping_mul(2_654_435_761) % 50_000;
            if step % 3 == 0 && step > 100_000 {
                assert_eq!(set.remove(row), model.remove(&row));
            } else {
                set.insert(row);
                model.insert(row);
            }
            assert_eq!(set.len(), model.len());
        }
        assert_eq!(set.iter().collect::<BTreeSet<_>>(), model);
        assert!(model.iter().all(|&row| set.contains(row)) && !set.contains(50_000));
        while let Some(row) = set.pop() {
            assert!(model.remove(&row));
        }
        assert!(model.is_empty() && set.is_empty());
    }

    #[test]
    fn a_set_that_has_lost_nearly_all_its_rows_gives_back_their_room() {
        let mut set = RowSet::default();
        (0..100_000).for_each(|row| set.insert(row));
        let full = set.held_bytes();
        (100..100_000).for_each(|row| assert!(set.remove(row)));
        assert!(set.held_bytes() < full / 8);
        (0..100).for_each(|row| assert!(set.remove(row)));
        assert_eq!(set.held_bytes(), 0);
    }
}
