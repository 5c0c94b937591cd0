//! What a reader takes piece by piece: a frozen user partition, and a listing of one.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::image::Frozen;
use crate::lock::locked;
use crate::row::{Row, Tail};
use crate::shard::{Shared, pair};

/// A user partition that is being copied, then its state image.
#[pyclass(frozen, module = "rlmm_native")]
pub struct FrozenPartition {
    shared: Arc<Shared>,
    key: Box<[u8]>,
    frozen: Mutex<Option<Frozen>>,
}

impl FrozenPartition {
    pub fn new(shared: Arc<Shared>, key: &[u8], frozen: Frozen) -> Self {
        FrozenPartition { shared, key: key.into(), frozen: Mutex::new(Some(frozen)) }
    }
}

#[pymethods]
impl FrozenPartition {
    /// Copies some more; returns whether all is copied.
    fn go_on(&self, py: Python<'_>) -> bool {
        py.detach(|| {
            let inner = locked(&self.shared);
            let mut held = self.frozen.lock().unwrap_or_else(PoisonError::into_inner);
            match (held.as_mut(), inner.state.get(&self.key)) {
                (Some(frozen), Some(partition)) => frozen.go_on(partition, &inner.state.rows),
                _ => true,
            }
        })
    }

    /// Returns the image; it can be made once, in any thread.
    fn image<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let frozen = self.frozen.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let image = py.detach(|| frozen.image());
        Some(PyBytes::new(py, &image))
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
