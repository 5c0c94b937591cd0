//! The walk over the batches of a record set for readers that keep no state: every CRC is checked.
//!
//! It ends where no whole and sound batch begins. `rlmm.records` names what stands there.

#[cfg(feature = "python")]
use pyo3::prelude::*;
#[cfg(feature = "python")]
use pyo3::types::PyBytes;

use crate::batch::{self, Batch, HEADER_BYTES};

/// Sound batches in a row, without a hole between their offsets and of one leader epoch.
struct Run {
    stop: usize,
    base_offset: i64,
    next_offset: i64,
    last_start: usize,
    max_timestamp: i64,
    /// The last offset of the first batch with that time.
    max_timestamp_offset: i64,
    leader_epoch: i32,
}

impl Run {
    fn of(batch: &Batch) -> Self {
        Run {
            stop: batch.stop,
            base_offset: batch.base_offset,
            next_offset: batch.next_offset(),
            last_start: batch.start,
            max_timestamp: batch.max_timestamp,
            max_timestamp_offset: batch.last_offset,
            leader_epoch: batch.leader_epoch,
        }
    }

    /// Takes in the batch behind the run; returns whether it belongs there.
    fn goes_on_with(&mut self, batch: &Batch) -> bool {
        if batch.base_offset != self.next_offset || batch.leader_epoch != self.leader_epoch {
            return false;
        }
        if batch.max_timestamp > self.max_timestamp {
            self.max_timestamp = batch.max_timestamp;
            self.max_timestamp_offset = batch.last_offset;
        }
        self.stop = batch.stop;
        self.next_offset = batch.next_offset();
        self.last_start = batch.start;
        true
    }

    fn write(&self, out: &mut Vec<u8>) {
        let numbers = [
            self.stop as i64,
            self.base_offset,
            self.next_offset,
            self.last_start as i64,
            self.max_timestamp,
            self.max_timestamp_offset,
            self.leader_epoch.into(),
        ];
        numbers.iter().for_each(|number| out.extend(number.to_be_bytes()));
    }
}

fn headers_of(data: &[u8], mut start: usize) -> Vec<u8> {
    let mut headers = Vec::new();
    while let Some(batch) = batch::read(data, start) {
        headers.extend_from_slice(&data[start..start + HEADER_BYTES]);
        start = batch.stop;
    }
    headers
}

fn runs_of(data: &[u8], mut start: usize, mut mark: i64, interval: i64) -> Vec<u8> {
    let mut runs = Vec::new();
    let mut open: Option<Run> = None;
    while let Some(batch) = batch::read(data, start) {
        if !open.as_mut().is_some_and(|run| run.goes_on_with(&batch)) {
            open.replace(Run::of(&batch)).inspect(|run| run.write(&mut runs));
        }
        if (start as i64).saturating_sub(mark) > interval {
            mark = start as i64;
            open.take().inspect(|run| run.write(&mut runs));
        }
        start = batch.stop;
    }
    open.inspect(|run| run.write(&mut runs));
    runs
}

/// Returns the headers of the sound batches from byte `start` of `data` on, each as it stands.
#[cfg(feature = "python")]
#[pyfunction]
pub fn sound_headers<'py>(py: Python<'py>, data: &Bound<'py, PyBytes>, start: usize) -> Bound<'py, PyBytes> {
    let bytes = data.as_bytes();
    let headers = py.detach(|| headers_of(bytes, start));
    PyBytes::new(py, &headers)
}

/// Returns the sound batches from byte `start` of `data` on in runs. A run ends behind the first
/// batch that begins more than `interval` bytes behind byte `mark`, which is then the new mark.
#[cfg(feature = "python")]
#[pyfunction]
pub fn sound_runs<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyBytes>,
    start: usize,
    mark: i64,
    interval: i64,
) -> Bound<'py, PyBytes> {
    let bytes = data.as_bytes();
    let runs = py.detach(|| runs_of(bytes, start, mark, interval));
    PyBytes::new(py, &runs)
}
