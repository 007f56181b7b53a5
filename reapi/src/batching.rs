//! Requests of many tasks in one call.
//!
//! The first request leaves at once. While as many calls as may be are under way, further requests wait, and leave
//! together when one comes back: no timer, no delay where there is no crowd. A call that is too large for the server goes
//! once more in halves, and no later one is larger: servers do not always take as much as they state. Does not depend
//! on the kind of request.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

/// A call that takes many requests.
pub trait BatchCall: Send + Sync + 'static {
    /// A request.
    type Request: Clone + Send + 'static;
    /// Its answer.
    type Answer: Send + 'static;

    /// How much of a call a request takes.
    fn weight(&self, request: &Self::Request) -> usize;

    /// Makes one call: an answer for each request, in their order.
    fn send(&self, requests: Vec<Self::Request>) -> impl Future<Output = Vec<Self::Answer>> + Send;

    /// Whether an answer says that its call was too large for the server.
    fn is_too_large(_answer: &Self::Answer) -> bool {
        false
    }
}

/// Merges requests.
pub struct Batcher<B: BatchCall> {
    pub batch: B,
    limits: BatchLimits,
    queue: Mutex<Queue<B>>,
}

/// The limits of one call, and the most calls at once.
#[derive(Debug, Clone, Copy)]
pub struct BatchLimits {
    /// The sum of the weights of a call.
    pub weight: usize,
    /// The number of requests of a call.
    pub count: usize,
    /// How many calls are under way at once.
    pub calls: usize,
}

struct Queue<B: BatchCall> {
    waiting: VecDeque<Waiting<B>>,
    calls: usize,
    /// The sum of the weights of a call, as it turned out.
    weight: usize,
}

/// A request, and who waits for its answer.
type Waiting<B> = (<B as BatchCall>::Request, oneshot::Sender<<B as BatchCall>::Answer>);

impl<B: BatchCall> Batcher<B> {
    pub fn new(batch: B, limits: BatchLimits) -> Arc<Self> {
        let queue = Queue { waiting: VecDeque::new(), calls: 0, weight: limits.weight };
        Arc::new(Self { batch, limits, queue: Mutex::new(queue) })
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
        let wanted = weight.div_ceil(queue.weight.max(1)).max(receivers.len().div_ceil(self.limits.count));
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
            let answers = self.batch.send(taken.iter().map(|(request, _)| request.clone()).collect()).await;
            if taken.len() > 1 && answers.iter().all(B::is_too_large) {
                self.put_back(taken);
                continue;
            }
            for ((_, sender), answer) in taken.into_iter().zip(answers) {
                // Who asked may have gone.
                let _gone = sender.send(answer);
            }
        }
    }

    /// Has requests wait again, for calls that hold half as much.
    fn put_back(&self, taken: Vec<Waiting<B>>) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let weight: usize = taken.iter().map(|(request, _)| self.batch.weight(request)).sum();
        queue.weight = queue.weight.min(weight / 2);
        for waiting in taken.into_iter().rev() {
            queue.waiting.push_front(waiting);
        }
    }

    fn take(&self) -> Option<Vec<Waiting<B>>> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = Vec::new();
        let mut weight = 0;
        while let Some((request, _)) = queue.waiting.front() {
            weight += self.batch.weight(request);
            if taken.len() == self.limits.count || (weight > queue.weight && !taken.is_empty()) {
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
