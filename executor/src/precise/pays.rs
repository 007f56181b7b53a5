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
/// Until that is known, so many steps of a run are performed for later ones to compare with,
const LESSONS: u32 = 4;
/// and as many as take this part of its backends' time.
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
    /// Steps whose result could not.
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
        self.gains(estimate, f64::from(self.saved + saved) / f64::from(self.tried + tried))
    }

    /// Whether to perform one for a later link to compare with. It saves nothing now, and costs no time where a slot is
    /// idle.
    pub fn may_learn(&mut self, estimate: Duration, is_idle: bool) -> bool {
        self.backends += estimate;
        let known = self.tried >= ENOUGH;
        let (saved, tried) = HOPE;
        let learns = known && self.gains(estimate, f64::from(self.saved) / f64::from(self.tried))
            || (is_idle || self.lessons < LESSONS)
                && self.gains(estimate, f64::from(saved) / f64::from(tried))
            || self.cost().as_secs_f64() * f64::from(self.lessons + 1)
                <= self.backends.as_secs_f64() * TUITION;
        self.lessons += u32::from(learns);
        learns
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
        let learn_all = learned(&mut pays);
        assert!((40..60).contains(&learn_all), "20 ms of 1000 times 100 ms: {learn_all}");
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
