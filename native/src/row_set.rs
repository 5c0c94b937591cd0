//! A set of rows that nearly always has few.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;

use crate::id_tables::IdTables;
use crate::row::RowNo;

const FEW_MAX: usize = 24;

struct ManyRows {
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

enum Rows {
    Few(Vec<RowNo>),
    Many(ManyRows),
}

/// Small where it is empty: each leader epoch has one.
#[derive(Default)]
pub struct RowSet(Option<Box<Rows>>);

impl RowSet {
    pub fn insert(&mut self, row: RowNo) {
        let rows = self.0.get_or_insert_with(|| Box::new(Rows::Few(Vec::new())));
        match &mut **rows {
            Rows::Few(few) if few.contains(&row) => (),
            Rows::Few(few) if few.len() < FEW_MAX => few.push(row),
            Rows::Few(few) => {
                let mut many = ManyRows::of(few);
                many.insert(row);
                **rows = Rows::Many(many);
            }
            Rows::Many(many) => many.insert(row),
        }
    }

    /// Removes `row`; returns whether it was there.
    pub fn remove(&mut self, row: RowNo) -> bool {
        let Some(rows) = &mut self.0 else { return false };
        match &mut **rows {
            Rows::Few(few) => {
                let Some(at) = few.iter().position(|&one| one == row) else { return false };
                few.swap_remove(at); // the next one that comes finds room
                true
            }
            Rows::Many(many) => {
                let was_there = many.remove(row);
                if many.count == 0 {
                    self.0 = None;
                }
                was_there
            }
        }
    }

    pub fn pop(&mut self) -> Option<RowNo> {
        let row = self.iter().next()?;
        self.remove(row);
        Some(row)
    }

    pub fn contains(&self, row: RowNo) -> bool {
        match self.0.as_deref() {
            None => false,
            Some(Rows::Few(few)) => few.contains(&row),
            Some(Rows::Many(many)) => many.contains(row),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn len(&self) -> usize {
        match self.0.as_deref() {
            None => 0,
            Some(Rows::Few(few)) => few.len(),
            Some(Rows::Many(many)) => many.count,
        }
    }

    pub fn held_bytes(&self) -> usize {
        let of_rows = match self.0.as_deref() {
            None => return 0,
            Some(Rows::Few(few)) => few.capacity() * size_of::<RowNo>(),
            Some(Rows::Many(many)) => many.numbers.held_bytes(),
        };
        of_rows + size_of::<Rows>()
    }

    pub fn iter(&self) -> Box<dyn Iterator<Item = RowNo> + '_> {
        match self.0.as_deref() {
            None => Box::new(std::iter::empty()),
            Some(Rows::Few(few)) => Box::new(few.iter().copied()),
            Some(Rows::Many(many)) => Box::new(many.numbers.iter()),
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
