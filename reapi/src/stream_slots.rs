//! How many executions may be followed at once: the server's limit, which shows when it refuses one.
//!
//! A server may need a thread for each stream that is open, and have few of them; its workers' calls need threads too, so
//! that streams of queued actions, which wait for workers, can keep workers from coming. When one is refused while others
//! are open, the limit becomes half of those, and queued ones give way until they are no more than that. The limit stays:
//! a worker that is refused, because this client tries for more, may end. Does not depend on the actions.

use tokio::sync::watch;

/// The slots for streams.
pub struct StreamSlots(watch::Sender<SlotCounts>);

#[derive(Debug, Clone, Copy)]
struct SlotCounts {
    open: usize,
    limit: usize,
}

/// A stream's place, until this is dropped.
pub struct StreamSlot<'a> {
    slots: &'a StreamSlots,
    is_given_up: bool,
}

impl Default for StreamSlots {
    fn default() -> Self {
        Self(watch::Sender::new(SlotCounts { open: 0, limit: usize::MAX }))
    }
}

impl StreamSlots {
    /// A place, when there is room.
    pub async fn enter(&self) -> StreamSlot<'_> {
        let mut changes = self.0.subscribe();
        loop {
            let taken = self.0.send_if_modified(|state| {
                let is_free = state.open < state.limit;
                state.open += usize::from(is_free);
                is_free
            });
            if taken {
                return StreamSlot { slots: self, is_given_up: false };
            }
            // The sender lives as long as `self`. The guard that is returned holds a lock, so it is dropped.
            drop(changes.wait_for(|state| state.open < state.limit).await);
        }
    }
}

impl StreamSlot<'_> {
    /// The server refused the stream for want of room. Whether there may be room when others have given way, or end.
    pub fn refused(&self) -> bool {
        let mut others = 0;
        self.slots.0.send_if_modified(|state| {
            others = state.open - 1;
            // Streams above the limit are giving way already.
            let shrinks = others > 0 && others <= state.limit;
            if shrinks {
                state.limit = (others / 2).max(1);
            }
            shrinks
        });
        others > 0
    }

    /// Waits until more are open than may be, and gives up the place if that is still so then.
    pub async fn give_way(&mut self) {
        let mut changes = self.slots.0.subscribe();
        while !self.is_given_up {
            drop(changes.wait_for(|state| state.open > state.limit).await);
            self.is_given_up = self.slots.0.send_if_modified(|state| {
                let is_crowded = state.open > state.limit;
                state.open -= usize::from(is_crowded);
                is_crowded
            });
        }
    }
}

impl Drop for StreamSlot<'_> {
    fn drop(&mut self) {
        if !self.is_given_up {
            self.slots.0.send_modify(|state| state.open -= 1);
        }
    }
}
