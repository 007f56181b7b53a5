//! Requests of many tasks in one call.
//!
//! The first request leaves at once. While as many calls as may be are under way, further requests wait, and leave
//! together when one comes back: no timer, no delay where there is no crowd. Knows nothing of what is asked.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

/// A call that takes many requests.
pub trait Batch: Send + Sync + 'static {
    /// A request.
    type Request: Send + 'static;
    /// Its answer.
    type Answer: Send + 'static;

    /// How much of a call a request takes.
    fn weight(&self, request: &Self::Request) -> usize;

    /// Makes one call: an answer for each request, in their order.
    fn send(&self, requests: Vec<Self::Request>) -> impl Future<Output = Vec<Self::Answer>> + Send;
}

/// Merges requests.
pub struct Merge<B: Batch> {
    pub batch: B,
    limits: Limits,
    queue: Mutex<Queue<B>>,
}

/// What one call may hold, and how many of them there may be.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The sum of the weights of a call.
    pub weight: usize,
    /// The number of requests of a call.
    pub count: usize,
    /// How many calls are under way at once.
    pub calls: usize,
}

struct Queue<B: Batch> {
    waiting: VecDeque<(B::Request, oneshot::Sender<B::Answer>)>,
    calls: usize,
}

impl<B: Batch> Merge<B> {
    pub fn new(batch: B, limits: Limits) -> Arc<Self> {
        Arc::new(Self { batch, limits, queue: Mutex::new(Queue { waiting: VecDeque::new(), calls: 0 }) })
    }

    /// Sends requests soon; each answer comes by itself.
    pub fn ask(self: &Arc<Self>, requests: Vec<B::Request>) -> Vec<oneshot::Receiver<B::Answer>> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let mut weight = 0;
        let mut receivers = Vec::with_capacity(requests.len());
        for request in requests {
            let (sender, receiver) = oneshot::channel();
            weight += self.batch.weight(&request);
            queue.waiting.push_back((request, sender));
            receivers.push(receiver);
        }
        let wanted =
            weight.div_ceil(self.limits.weight.max(1)).max(receivers.len().div_ceil(self.limits.count));
        let more = wanted.min(self.limits.calls - queue.calls);
        queue.calls += more;
        drop(queue);
        for _ in 0..more {
            tokio::spawn(self.clone().work());
        }
        receivers
    }

    /// Makes calls until nothing waits.
    async fn work(self: Arc<Self>) {
        while let Some(taken) = self.take() {
            let (requests, senders): (Vec<_>, Vec<_>) = taken.into_iter().unzip();
            for (sender, answer) in senders.into_iter().zip(self.batch.send(requests).await) {
                // Who asked may have gone.
                let _gone = sender.send(answer);
            }
        }
    }

    #[expect(clippy::type_complexity, reason = "what the queue holds")]
    fn take(&self) -> Option<Vec<(B::Request, oneshot::Sender<B::Answer>)>> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = Vec::new();
        let mut weight = 0;
        while let Some((request, _)) = queue.waiting.front() {
            weight += self.batch.weight(request);
            if taken.len() == self.limits.count || (weight > self.limits.weight && !taken.is_empty()) {
                break;
            }
            taken.extend(queue.waiting.pop_front());
        }
        if taken.is_empty() {
            queue.calls -= 1;
            return None;
        }
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::Semaphore;

    /// Doubles numbers when it is permitted to, and notes what came together.
    struct Double {
        permits: Arc<Semaphore>,
        calls: Mutex<Vec<Vec<usize>>>,
    }

    impl Batch for Double {
        type Request = usize;
        type Answer = usize;

        fn weight(&self, request: &usize) -> usize {
            *request
        }

        async fn send(&self, requests: Vec<usize>) -> Vec<usize> {
            self.calls.lock().expect("no test panics").push(requests.clone());
            self.permits.acquire().await.expect("it is never closed").forget();
            requests.into_iter().map(|request| request * 2).collect()
        }
    }

    #[tokio::test]
    async fn what_waits_goes_together() {
        let permits = Arc::new(Semaphore::new(0));
        let batch = Double { permits: permits.clone(), calls: Mutex::default() };
        let merge = Merge::new(batch, Limits { weight: 10, count: 3, calls: 1 });
        let mut answers = merge.ask(vec![1]);
        tokio::task::yield_now().await;
        // 20 alone is more than a call may hold, and goes alone.
        for request in [2, 3, 4, 5, 20, 1, 1, 1, 1] {
            answers.extend(merge.ask(vec![request]));
        }
        permits.add_permits(100);
        let mut doubled = Vec::new();
        for answer in answers {
            doubled.push(answer.await.expect("every request has an answer"));
        }
        assert_eq!(doubled, [2, 4, 6, 8, 10, 40, 2, 2, 2, 2]);
        let calls = merge.batch.calls.lock().expect("no test panics");
        assert_eq!(*calls, [vec![1], vec![2, 3, 4], vec![5], vec![20], vec![1, 1, 1], vec![1]]);
    }
}
