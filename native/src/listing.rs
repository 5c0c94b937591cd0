//! What a reader takes piece by piece: a frozen shard, and the listing of a user partition.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::frozen::{Frozen, NoRoom};
use crate::row::{Row, Tail};
use crate::shard::pair;
use crate::shared::Shared;
use crate::state::{State, WalkPlace};

/// Rows that are copied in one step: no reader waits for the shard longer than some 0.1 ms.
const COPIED_AT_A_TIME: usize = 2_048;

impl From<NoRoom> for PyErr {
    fn from(_: NoRoom) -> Self {
        PyMemoryError::new_err("no memory for the copy of a user partition, or for its state image")
    }
}

#[derive(Default)]
struct Copies {
    /// The place in the state that is looked at next; `None`: one user partition alone is copied.
    place: Option<WalkPlace>,
    open: Option<Frozen>,
    done: Vec<Option<Frozen>>,
    is_sorted: bool,
}

impl Copies {
    /// Copies some more; returns whether all is copied.
    fn go_on(&mut self, state: &State) -> Result<bool, NoRoom> {
        let mut left = COPIED_AT_A_TIME;
        loop {
            if let Some(mut frozen) = self.open.take() {
                let is_copied =
                    state.get(&frozen.key).is_none_or(|partition| frozen.go_on(partition, &state.rows, &mut left));
                if !is_copied {
                    self.open = Some(frozen);
                    return Ok(false);
                }
                self.done.push(Some(frozen));
            }
            let Some(place) = &mut self.place else { return Ok(true) };
            if left == 0 {
                return Ok(false);
            }
            left -= 1;
            let Some(found) = state.frozen_at(place)? else { return Ok(true) };
            self.open = found;
        }
    }

    fn take(&mut self, number: usize) -> Option<Frozen> {
        if !self.is_sorted {
            self.done.sort_unstable_by(|one, other| {
                one.as_ref().map(|frozen| &frozen.key).cmp(&other.as_ref().map(|frozen| &frozen.key))
            });
            self.is_sorted = true;
        }
        self.done.get_mut(number)?.take()
    }
}

/// All user partitions of a shard, or one, that are being copied, then their state images.
#[pyclass(frozen, module = "rlmm_native")]
pub struct FrozenShard {
    shared: Arc<Shared>,
    copies: Mutex<Copies>,
}

impl FrozenShard {
    pub fn of_all(shared: Arc<Shared>) -> Self {
        FrozenShard { shared, copies: Mutex::new(Copies { place: Some(WalkPlace::default()), ..Copies::default() }) }
    }

    pub fn of_one(shared: Arc<Shared>, frozen: Frozen) -> Self {
        FrozenShard { shared, copies: Mutex::new(Copies { open: Some(frozen), ..Copies::default() }) }
    }

    fn copies(&self) -> MutexGuard<'_, Copies> {
        self.copies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl FrozenShard {
    /// Copies some more; returns whether all is copied.
    fn go_on(&self, py: Python<'_>) -> PyResult<bool> {
        let is_copied = py.detach(|| {
            let inner = self.shared.locked();
            self.copies().go_on(&inner.state)
        });
        Ok(is_copied?)
    }

    /// Returns how many user partitions are copied.
    fn count(&self) -> usize {
        self.copies().done.len()
    }

    /// Returns the image of one, by its number in the order of keys; it can be made once, in any
    /// thread.
    fn image<'py>(&self, py: Python<'py>, number: usize) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let image = py.detach(|| {
            let frozen = self.copies().take(number); // the others need not wait for its image
            frozen.map(Frozen::image).transpose()
        })?;
        Ok(image.map(|image| PyBytes::new(py, &image)))
    }
}

/// How rows are sorted, and what of them is answered.
pub type Listed = ((i64, u8, u64, [u8; 16]), Row, Tail);

/// The segments of one user partition as they were when the listing was made.
#[pyclass(frozen, module = "rlmm_native")]
pub struct RowListing {
    left: Mutex<std::vec::IntoIter<Listed>>,
}

impl RowListing {
    pub fn new(mut rows: Vec<Listed>) -> Self {
        rows.sort_unstable_by_key(|listed| listed.0);
        RowListing { left: Mutex::new(rows.into_iter()) }
    }
}

#[pymethods]
impl RowListing {
    fn take<'py>(&self, py: Python<'py>, count: usize) -> PyResult<Bound<'py, PyList>> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let found = PyList::empty(py);
        for (_, row, tail) in left.by_ref().take(count) {
            found.append(pair(py, &row, &tail))?;
        }
        Ok(found)
    }
}
