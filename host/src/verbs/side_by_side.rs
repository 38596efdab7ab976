//! Work on several things at once, so that what is written for them shares commits.

use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// How many are worked on at the same time: more would open more connections than the store keeps.
const AT_A_TIME: usize = 4;

/// Does the work on each, side by side; what came of each, in their order. One alone is worked on in this thread.
pub(crate) fn side_by_side<T: Send, O: Send>(items: Vec<T>, work: impl Fn(T) -> O + Sync) -> Vec<O> {
    let workers = items.len().min(AT_A_TIME);
    let left = Mutex::new(items.into_iter().enumerate());
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    let take = || {
        let done = |(place, item)| (place, work(item));
        std::iter::from_fn(next).map(done).collect::<Vec<_>>()
    };
    let mut all = thread::scope(|scope| {
        let others: Vec<_> = (1..workers).map(|_| scope.spawn(take)).collect();
        let mut all = take();
        for other in others {
            all.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        all
    });
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, outcome)| outcome).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_of_each_is_in_the_order_of_the_things() {
        for length in [0, 1, 3, 100] {
            let doubled = side_by_side((0..length).collect(), |number: u32| number * 2);
            assert_eq!(doubled, (0..length).map(|number| number * 2).collect::<Vec<_>>());
        }
    }
}
