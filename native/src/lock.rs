//! The lock around a state, and what becomes of the state when code panics while it holds it.
//!
//! A panic may leave an event half applied. So nothing is read from such a state any more, and
//! nothing is applied to it: its user has to give it up.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard};

const UNUSABLE: &str = "the native core panicked before: its state cannot be used any more";

/// Takes the lock. Panics where a panic has left the state half changed.
pub fn locked<S>(shared: &Mutex<S>) -> MutexGuard<'_, S> {
    shared.lock().unwrap_or_else(|_| panic!("{UNUSABLE}"))
}

/// Does `work` under the lock, and returns in words why it failed.
pub fn guarded<S, T>(shared: &Mutex<S>, work: impl FnOnce(&mut S) -> T) -> Result<T, String> {
    // The lock is taken within: when its guard is dropped by a panic, the state is marked.
    let outcome = catch_unwind(AssertUnwindSafe(|| match shared.lock() {
        Ok(mut state) => Ok(work(&mut state)),
        Err(_) => Err(UNUSABLE.to_owned()),
    }));
    outcome.unwrap_or_else(|cause| Err(format!("the native core panicked: {}", words_of(&*cause))))
}

fn words_of(cause: &(dyn Any + Send)) -> &str {
    let text = cause.downcast_ref::<String>().map(String::as_str);
    text.or(cause.downcast_ref::<&str>().copied()).unwrap_or("no reason is given")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_is_given_up_when_code_panics_under_the_lock() {
        let shared = Mutex::new(vec![1, 2]);
        assert_eq!(guarded(&shared, |state| state.len()), Ok(2));
        let number = shared.lock().map_or(0, |state| state.len());
        let failed = guarded(&shared, |state| {
            state.push(3);
            state[number + 1]
        });
        assert!(failed.is_err_and(|words| words.contains("the native core panicked: index out of bounds")));
        assert_eq!(guarded(&shared, |state| state.len()), Err(UNUSABLE.to_owned()));
        assert!(catch_unwind(AssertUnwindSafe(|| locked(&shared).len())).is_err());
    }
}
