//! Whether an import step pays: what it costs against what it is expected to save.
//!
//! Arithmetic over what this run has seen. Knows nothing of modules.

use std::time::Duration;

/// What a step takes before one was seen, and what loading the tool takes.
const FIRST: Duration = Duration::from_millis(40);
/// From so many steps on it is seen how much longer those of long backends take.
const LINE: u32 = 4;
/// A backend that takes no longer is not worth describing: no step is as quick.
const SMALLEST: Duration = Duration::from_millis(12);
/// What a step is to save, in its own cost.
const GAIN: f64 = 1.5;
/// Before any was seen, so many of so many steps are expected to save their backend.
const HOPE: (u32, u32) = (3, 4);
/// So many comparisons tell how often a step saves its backend.
const ENOUGH: u32 = 3;
/// What is expected before a run weighs as much as so many comparisons of its own: edits are not alike.
const WEIGHT: f64 = 2.0;
/// Steps that are not expected to pay may take this part of the time of a run's backends.
const TUITION: f64 = 0.015;

/// Whether the step of a backend that takes so long could ever save anything.
pub fn could_gain(estimate: Duration) -> bool {
    estimate > SMALLEST
}

/// Whether links in which so many results of steps were compared, and so many were the same, show that steps save backends.
pub fn is_known_to_save(tried: u32, saved: u32) -> bool {
    tried >= ENOUGH && 2 * saved >= tried
}

/// What the steps of a run have cost, and how often steps have saved a backend.
#[derive(Debug)]
pub struct Pays {
    steps: Line,
    /// How often a step is expected to save its backend, and of how many comparisons, and backends saved, earlier links know.
    expected: f64,
    before: (u32, u32),
    /// Steps of this run whose result could be compared, and those after which no backend had to run.
    tried: u32,
    saved: u32,
    /// What steps of this run took that saved nothing.
    in_vain: Duration,
    /// What all backends of the run take that no cache has.
    backends: Duration,
}

impl Pays {
    /// After links in which so many results of steps were compared, and so many were the same.
    pub fn after(tried: u32, saved: u32) -> Self {
        let (hoped, of) = if tried < ENOUGH { HOPE } else { (0, 0) };
        Self {
            steps: Line::default(),
            expected: f64::from(saved.min(tried) + hoped) / f64::from(tried + of),
            before: (tried, saved),
            tried: 0,
            saved: 0,
            in_vain: Duration::ZERO,
            backends: Duration::ZERO,
        }
    }

    /// A run begins whose backends take so long.
    pub fn begin(&mut self, backends: Duration) {
        self.backends += backends;
    }

    /// One of them does not run.
    pub fn is_kept(&mut self, estimate: Duration) {
        self.backends = self.backends.saturating_sub(estimate);
    }

    /// Whether to perform the step of a backend that takes so long, whose result can be compared.
    pub fn expects_gain(&self, estimate: Duration) -> bool {
        self.gains(estimate) || self.affords(estimate)
    }

    /// Whether to perform one for a later link to compare with. It saves nothing now, and costs no time where a slot is
    /// idle.
    pub fn may_learn(&self, estimate: Duration, is_idle: bool) -> bool {
        let (tried, saved) = (self.before.0 + self.tried, self.before.1 + self.saved);
        // What is learned tells nothing in this run, which may be the one that shows that nothing is saved.
        ((is_idle || is_known_to_save(tried, saved)) && self.gains(estimate)) || self.affords(estimate)
    }

    /// Whether a step that is not expected to pay may be performed.
    fn affords(&self, estimate: Duration) -> bool {
        self.in_vain.as_secs_f64() + self.cost(estimate) <= self.backends.as_secs_f64() * TUITION
    }

    fn gains(&self, estimate: Duration) -> bool {
        let saved = self.expected * WEIGHT + f64::from(self.saved);
        let rate = saved / (WEIGHT + f64::from(self.tried));
        estimate.as_secs_f64() * rate >= self.cost(estimate) * GAIN
    }

    /// Seconds that the step of such a backend takes.
    fn cost(&self, estimate: Duration) -> f64 {
        if self.steps.count == 0 { FIRST.as_secs_f64() } else { self.steps.at(estimate.as_secs_f64()) }
    }

    /// The step of a backend that takes so long took so long.
    pub fn took(&mut self, estimate: Duration, time: Duration) {
        if self.steps.count == 0 {
            self.in_vain += FIRST;
        }
        self.steps.add(estimate.as_secs_f64(), time.as_secs_f64());
        self.in_vain += time;
    }

    /// Whether a step that took so long saved its backend.
    pub fn tried(&mut self, time: Duration, saved: bool) {
        self.tried += 1;
        if saved {
            self.saved += 1;
            self.in_vain = self.in_vain.saturating_sub(time);
        }
    }
}

/// What steps took over what their backends take: a line by least squares, never below the quickest.
#[derive(Debug, Default)]
struct Line {
    count: u32,
    least: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
}

impl Line {
    fn add(&mut self, x: f64, y: f64) {
        self.least = if self.count == 0 { y } else { self.least.min(y) };
        self.count += 1;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.xy += x * y;
    }

    /// The mean, where the points say no more.
    fn at(&self, x: f64) -> f64 {
        let count = f64::from(self.count);
        let (mean, spread) = (self.y / count, self.xx - self.x * self.x / count);
        if self.count < LINE || spread <= 0.0 {
            return mean;
        }
        let slope = (self.xy - self.x * self.y / count) / spread;
        (mean + slope.max(0.0) * (x - self.x / count)).max(self.least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_millis(100);
    const STEP: Duration = Duration::from_millis(40);

    /// A run of so many long backends after such links.
    fn run(backends: u32, tried: u32, saved: u32) -> Pays {
        let mut pays = Pays::after(tried, saved);
        pays.begin(LONG * backends);
        pays
    }

    /// Of how many long backends the step is performed, which spares each or none.
    fn steps(pays: &mut Pays, saves: bool) -> usize {
        let step = |pays: &mut Pays| {
            let is_performed = pays.expects_gain(LONG);
            if is_performed {
                pays.took(LONG, STEP);
                pays.tried(STEP, saves);
            }
            is_performed
        };
        (0..1000).filter(|_| step(pays)).count()
    }

    fn lessons(pays: &mut Pays, is_idle: bool) -> usize {
        let learn = |pays: &mut Pays| {
            let learns = pays.may_learn(LONG, is_idle);
            if learns {
                pays.took(LONG, STEP);
            }
            learns
        };
        (0..1000).filter(|_| learn(pays)).count()
    }

    #[test]
    fn steps_go_on_while_they_save_backends() {
        assert_eq!(steps(&mut run(1000, 0, 0), true), 1000);
        assert_eq!(steps(&mut run(1000, 100, 90), true), 1000);
        // The first ones that are not expected to save anything show that they do.
        assert_eq!(steps(&mut run(1000, 100, 2), true), 1000);
    }

    #[test]
    fn in_vain_they_keep_within_a_part_of_the_time() {
        for (tried, saved) in [(0, 0), (100, 0), (100, 50), (100, 100)] {
            let performed = steps(&mut run(1000, tried, saved), false);
            assert!(
                (32..40).contains(&performed),
                "{saved} of {tried}: {performed}; 40 ms of 15 times 100 ms"
            );
        }
    }

    #[test]
    fn what_earlier_links_have_seen_counts_until_a_run_shows_otherwise() {
        // Nothing can be afforded here.
        for (tried, saved, most) in [(0, 0, 1), (100, 2, 0), (100, 50, 0), (100, 100, 2)] {
            let performed = steps(&mut run(0, tried, saved), false);
            assert_eq!(performed, most, "{saved} of {tried}");
        }
        let mut kept = run(1000, 0, 0);
        kept.is_kept(LONG * 999);
        assert_eq!(lessons(&mut kept, false), 0, "a cache has nearly all");
    }

    #[test]
    fn little_is_learned_before_it_is_known_whether_it_saves_anything() {
        for (tried, saved, least) in [(0, 0, 32), (50, 3, 32), (50, 20, 32), (50, 45, 1000)] {
            let learned = lessons(&mut run(1000, tried, saved), false);
            assert!((least..least + 10).contains(&learned), "{saved} of {tried}: {learned}");
        }
        assert_eq!(lessons(&mut run(1000, 0, 0), true), 1000, "a slot is idle");
        assert_eq!(lessons(&mut run(10, 0, 0), false), 0, "a few backends pay for no lesson");
    }

    #[test]
    fn a_short_backend_has_a_short_step() {
        let milliseconds = Duration::from_millis;
        let mut pays = Pays::after(0, 0);
        for (backend, step) in [(20, 5), (100, 12), (200, 20), (400, 36)] {
            pays.took(milliseconds(backend), milliseconds(step));
            pays.tried(milliseconds(step), true);
        }
        // The mean is 18 ms.
        assert!(pays.expects_gain(milliseconds(16)));
        assert!(!pays.expects_gain(milliseconds(7)), "no step is as quick");
        assert!((0.03..0.04).contains(&pays.cost(milliseconds(400))), "{}", pays.cost(milliseconds(400)));
    }
}
