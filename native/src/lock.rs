//! What becomes of a state when code panics while it holds the lock around it.
//!
//! A panic may leave an event half applied. So nothing is read from such a state any more, and
//! nothing is applied to it: its user has to give it up.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{LockResult, MutexGuard};

pub const UNUSABLE: &str = "the native core panicked before: its state cannot be used any more";

/// Returns the lock. Panics where a panic has left half changed what it guards.
pub fn usable<S>(taken: LockResult<MutexGuard<'_, S>>) -> MutexGuard<'_, S> {
    taken.unwrap_or_else(|_| panic!("{UNUSABLE}"))
}

/// Does `work`, and returns in words why it failed. `work` takes the locks: when a panic drops
/// their guards, what they guard is marked.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|cause| match words_of(&*cause) {
        UNUSABLE => UNUSABLE.to_owned(),
        words => format!("the native core panicked: {words}"),
    })
}

fn words_of(cause: &(dyn Any + Send)) -> &str {
    let text = cause.downcast_ref::<String>().map(String::as_str);
    text.or(cause.downcast_ref::<&str>().copied()).unwrap_or("no reason is given")
}
