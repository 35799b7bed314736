//! Repeatable choices: a failing run prints its seed.

/// Environment variable with the seed.
const SEED: &str = "SAKSHI_FAULTS_SEED";

/// A generator of random numbers (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Returns a seed and its generator. The environment may set the seed of a run.
    pub fn of_this_run() -> (u64, Self) {
        let seed_of_environment = std::env::var(SEED).ok().and_then(|text| text.parse().ok());
        let seed = seed_of_environment.unwrap_or_else(|| {
            u64::from_be_bytes(uuid::Uuid::new_v4().as_bytes()[..8].try_into().expect("eight bytes"))
        });
        eprintln!("to repeat this run: {SEED}={seed}");
        (seed, Self(seed))
    }

    pub const fn from_seed(seed: u64) -> Self {
        Self(seed)
    }

    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `bound`.
    pub const fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
