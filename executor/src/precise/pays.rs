//! Whether an import step pays: what it costs against what it is expected to save.
//!
//! Arithmetic over what this run has seen. Knows nothing of modules.

use std::time::Duration;

/// What a step takes before one was seen: that of a small module with the tool loaded anew.
const FIRST: Duration = Duration::from_millis(40);
/// A backend that takes no longer is not worth describing: no step is as quick.
const SMALLEST: Duration = Duration::from_millis(12);
/// What a step is to save, in its own cost.
const GAIN: f64 = 1.5;

/// Whether the step of a backend that takes so long could ever save anything.
pub fn could_gain(estimate: Duration) -> bool {
    estimate > SMALLEST
}

/// What the steps of a run have cost and saved.
#[derive(Debug, Default)]
pub struct Pays {
    steps: u32,
    time: Duration,
    /// Steps whose result could be compared, and those after which no backend had to run.
    tried: u32,
    saved: u32,
}

impl Pays {
    /// Whether to perform the step of a backend that takes so long.
    pub fn expects_gain(&self, estimate: Duration) -> bool {
        let cost = if self.steps == 0 { FIRST } else { self.time / self.steps };
        // Before the first ones, three of four are expected to save their backend.
        let rate = f64::from(self.saved + 3) / f64::from(self.tried + 4);
        estimate.as_secs_f64() * rate >= cost.as_secs_f64() * GAIN
    }

    /// A step took so long.
    pub fn took(&mut self, time: Duration) {
        self.steps += 1;
        self.time += time;
    }

    /// Whether a step saved its backend.
    pub fn tried(&mut self, saved: bool) {
        self.tried += 1;
        self.saved += u32::from(saved);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_that_never_save_anything_are_given_up() {
        let (long, mut pays) = (Duration::from_millis(300), Pays::default());
        assert!(pays.expects_gain(long) && !pays.expects_gain(Duration::from_millis(30)));
        let mut steps = 0;
        while pays.expects_gain(long) {
            pays.took(Duration::from_millis(40));
            pays.tried(false);
            steps += 1;
        }
        assert!((5..20).contains(&steps), "{steps}");
    }

    #[test]
    fn steps_that_save_go_on() {
        let mut pays = Pays::default();
        for _ in 0..1000 {
            assert!(pays.expects_gain(Duration::from_millis(100)));
            pays.took(Duration::from_millis(40));
            pays.tried(true);
        }
    }
}
