//! The threads of connections. What the system still owes when they are dropped, such as the address of a name, is not waited
//! for. Knows nothing of what runs on them.

use std::ops::Deref;

use tokio::runtime::Runtime;

/// A runtime that ends without waiting.
#[derive(Debug)]
pub(super) struct Threads(Option<Runtime>);

impl Threads {
    pub(super) fn new(runtime: Runtime) -> Self {
        Self(Some(runtime))
    }
}

impl Deref for Threads {
    type Target = Runtime;

    fn deref(&self) -> &Runtime {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
