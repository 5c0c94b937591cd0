//! The native core of rlmm: one metadata partition with every user partition on it.
//!
//! `rlmm.metadata.native_shard` makes a `Shard` of it. What is rare is left to Python on purpose,
//! so that words and judgements stand in one place: damaged or compressed batches, record values of
//! an unusual form, refused images.

#![cfg_attr(not(feature = "python"), allow(dead_code, reason = "used by the part for Python alone"))]

mod apply;
mod batch;
mod bytes;
mod ended;
mod epoch;
mod epochs;
mod frame;
mod frozen;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod fuzz_input;
mod id_tables;
mod image;
#[cfg(feature = "python")]
mod listing;
mod lock;
#[cfg(feature = "python")]
mod lookups;
mod many_images;
mod orders;
mod partition;
mod place;
mod record_walk;
mod row;
#[cfg(feature = "python")]
mod row_lookups;
mod row_set;
mod row_store;
#[cfg(feature = "python")]
mod shard;
mod shared;
mod skips;
mod slots;
mod state;
mod value;
mod verdict;

#[cfg(feature = "python")]
use pyo3::prelude::*;

#[cfg(feature = "python")]
#[pymodule(gil_used = true)]
fn rlmm_native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("PanicException", module.py().get_type::<pyo3::panic::PanicException>())?;
    module.add_class::<shard::Core>()?;
    module.add_class::<listing::FrozenShard>()?;
    module.add_class::<lookups::FrameLookups>()?;
    module.add_class::<lookups::OpenShards>()?;
    module.add_class::<listing::RowListing>()?;
    module.add_function(wrap_pyfunction!(record_walk::sound_headers, module)?)?;
    module.add_function(wrap_pyfunction!(record_walk::sound_runs, module)?)?;
    Ok(())
}
