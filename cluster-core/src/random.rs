//! Seeded draws. Everything that looks random in the cluster comes from one of these, so a seed names a whole run.

use std::time::Duration;

use rand_core::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

/// The letters of generated names: no vowels and no look-alikes, as apimachinery's `rand.String` draws them.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

#[derive(Clone, Debug)]
pub struct Random(Pcg64Mcg);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(Pcg64Mcg::seed_from_u64(seed))
    }

    pub fn draw(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// An even draw from 0 to `bound` - 1; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(bound)) >> 64) as u64
    }

    /// An even draw between two durations.
    pub fn between(&mut self, low: Duration, high: Duration) -> Duration {
        let spread = high.saturating_sub(low).as_micros() as u64;
        low + Duration::from_micros(self.below(spread + 1))
    }

    /// A version 4 UUID.
    pub fn uuid(&mut self) -> String {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let (high, low) = (self.draw(), self.draw());
        let high = high & !0xf000 | 0x4000;
        let low = low & !(0b11 << 62) | 0b10 << 62;
        let mut bits = u128::from(high) << 64 | u128::from(low);
        let mut text = String::with_capacity(36);
        for length in [8, 4, 4, 4, 12] {
            if !text.is_empty() {
                text.push('-');
            }
            for _ in 0..length {
                bits = bits.rotate_left(4);
                text.push(char::from(DIGITS[(bits & 15) as usize]));
            }
        }
        text
    }

    /// The five letters that `generateName` appends.
    pub fn suffix(&mut self) -> String {
        (0..5).map(|_| ALPHABET[self.below(ALPHABET.len() as u64) as usize] as char).collect()
    }
}

/// Kubernetes' `SafeEncodeString`: digits and letters mapped to the alphabet of generated names.
pub fn safe_encode(text: &str) -> String {
    text.bytes().map(|byte| ALPHABET[byte as usize % ALPHABET.len()] as char).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_names_a_run() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            (random.uuid(), random.suffix(), random.below(10))
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        let uuid = draw(3).0;
        assert_eq!(uuid.len(), 36);
        assert_eq!(&uuid[14..15], "4");
        assert!(matches!(&uuid[19..20], "8" | "9" | "a" | "b"));
    }
}
