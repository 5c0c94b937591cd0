//! A set of rows that nearly always has few.

use hashbrown::HashSet;

use crate::row::RowNo;

const FEW_MAX: usize = 24;
/// A set of many is made smaller when it has room for this many times its rows.
const SPARSE: usize = 16;

pub enum RowSet {
    Few(Vec<RowNo>),
    Many(Box<HashSet<RowNo, foldhash::fast::RandomState>>),
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
                let mut many: HashSet<_, _> = rows.iter().copied().collect();
                many.insert(row);
                *self = RowSet::Many(Box::new(many));
            }
            RowSet::Many(rows) => {
                rows.insert(row);
            }
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
                let was_there = rows.remove(&row);
                if rows.is_empty() {
                    *self = RowSet::default();
                } else if rows.len() < rows.capacity() / SPARSE {
                    rows.shrink_to(rows.len() * 2); // a walk costs as much as there is room
                }
                was_there
            }
        }
    }

    pub fn pop(&mut self) -> Option<RowNo> {
        if let RowSet::Many(rows) = self {
            *self = RowSet::Few(rows.drain().collect());
        }
        match self {
            RowSet::Few(rows) => rows.pop(),
            RowSet::Many(_) => None,
        }
    }

    pub fn contains(&self, row: RowNo) -> bool {
        match self {
            RowSet::Few(rows) => rows.contains(&row),
            RowSet::Many(rows) => rows.contains(&row),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn len(&self) -> usize {
        match self {
            RowSet::Few(rows) => rows.len(),
            RowSet::Many(rows) => rows.len(),
        }
    }

    pub fn held_bytes(&self) -> usize {
        match self {
            RowSet::Few(rows) => rows.capacity() * size_of::<RowNo>(),
            RowSet::Many(rows) => rows.allocation_size() + size_of_val(&**rows),
        }
    }

    pub fn iter(&self) -> Box<dyn Iterator<Item = RowNo> + '_> {
        match self {
            RowSet::Few(rows) => Box::new(rows.iter().copied()),
            RowSet::Many(rows) => Box::new(rows.iter().copied()),
        }
    }
}
