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
/// Before the first ones, so many of so many are expected to save their backend.
const HOPE: (u32, u32) = (3, 4);
/// So many comparisons tell how often a step saves its backend.
const ENOUGH: u32 = 4;
/// Those of earlier links weigh no more than so many.
const WEIGHT: u32 = 16;
/// Until that is known, so many steps of a run are performed for later ones to compare with.
const LESSONS: u32 = 4;
/// Steps that are not expected to pay may take this part of a run's backends' time: edits are not alike.
const TUITION: f64 = 0.02;

/// Whether the step of a backend that takes so long could ever save anything.
pub fn could_gain(estimate: Duration) -> bool {
    estimate > SMALLEST
}

/// What the steps of a run have cost, and how often steps have saved a backend.
#[derive(Debug, Default)]
pub struct Pays {
    steps: u32,
    time: Duration,
    /// Steps whose result could be compared, and those after which no backend had to run; of earlier links too.
    tried: u32,
    saved: u32,
    /// Steps that were not expected to pay in this run.
    lessons: u32,
    /// What all backends that were asked about take.
    backends: Duration,
}

impl Pays {
    /// After links in which so many results of steps were compared, and so many were the same.
    pub fn after(tried: u32, saved: u32) -> Self {
        let weight = tried.min(WEIGHT);
        Self { tried: weight, saved: saved.min(tried) * weight / tried.max(1), ..Self::default() }
    }

    /// Whether to perform the step of a backend that takes so long, whose result can be compared.
    pub fn expects_gain(&mut self, estimate: Duration) -> bool {
        self.backends += estimate;
        let (saved, tried) = HOPE;
        self.gains(estimate, f64::from(self.saved + saved) / f64::from(self.tried + tried)) || self.affords()
    }

    /// Whether to perform one for a later link to compare with. It saves nothing now, and costs no time where a slot is
    /// idle.
    pub fn may_learn(&mut self, estimate: Duration, is_idle: bool) -> bool {
        self.backends += estimate;
        let (saved, tried) = HOPE;
        if self.tried >= ENOUGH && self.gains(estimate, f64::from(self.saved) / f64::from(self.tried)) {
            return true;
        }
        if (is_idle || self.lessons < LESSONS) && self.gains(estimate, f64::from(saved) / f64::from(tried)) {
            self.lessons += 1;
            return true;
        }
        self.affords()
    }

    /// Whether a step that is not expected to pay may be performed, which is noted.
    fn affords(&mut self) -> bool {
        let cost = self.cost().as_secs_f64() * f64::from(self.lessons + 1);
        let affords = cost <= self.backends.as_secs_f64() * TUITION;
        self.lessons += u32::from(affords);
        affords
    }

    fn gains(&self, estimate: Duration, rate: f64) -> bool {
        estimate.as_secs_f64() * rate >= self.cost().as_secs_f64() * GAIN
    }

    fn cost(&self) -> Duration {
        if self.steps == 0 { FIRST } else { self.time / self.steps }
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
    fn little_is_learned_before_it_is_known_whether_it_saves_anything() {
        let (long, mut pays) = (Duration::from_millis(100), Pays::default());
        let learned = |pays: &mut Pays| (0..1000).filter(|_| learn(pays, long)).count();
        let few = learned(&mut pays);
        assert!((40..60).contains(&few), "40 ms of 20 times 100 ms: {few}");
        assert_eq!(learned(&mut Pays::after(50, 45)), 1000);
        let hardly = learned(&mut Pays::after(50, 3));
        assert!((40..100).contains(&hardly), "{hardly}");
    }

    fn learn(pays: &mut Pays, estimate: Duration) -> bool {
        let learns = pays.may_learn(estimate, false);
        if learns {
            pays.took(Duration::from_millis(40));
        }
        learns
    }

    #[test]
    fn what_earlier_links_have_seen_counts() {
        let long = Duration::from_millis(100);
        assert!(!Pays::after(100, 2).expects_gain(long));
        assert!(Pays::after(100, 90).expects_gain(long));
        let mut pays = Pays::after(100, 2);
        let tried = (0..1000).filter(|_| pays.expects_gain(long)).count();
        assert_eq!(tried, 50, "edits are not alike: 40 ms of 20 times 100 ms");
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
