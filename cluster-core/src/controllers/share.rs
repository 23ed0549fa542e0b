//! Numbers that may be given as shares of a whole.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// A number, or a share of the whole. What can't be read counts as none.
pub fn scaled(value: Option<&IntOrString>, whole: i32, round_up: bool) -> i32 {
    match value {
        None => 0,
        Some(IntOrString::Int(number)) => *number,
        Some(IntOrString::String(text)) => {
            let percent: i64 = text.strip_suffix('%').and_then(|text| text.parse().ok()).unwrap_or(0);
            let exact = percent.saturating_mul(i64::from(whole));
            let rounded = if round_up { exact.saturating_add(99).div_euclid(100) } else { exact.div_euclid(100) };
            rounded.try_into().unwrap_or(i32::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_rounded_as_asked() {
        let share = |text: &str, round_up| scaled(Some(&IntOrString::String(text.into())), 5, round_up);
        assert_eq!((share("30%", true), share("30%", false)), (2, 1));
        assert_eq!((share("all", true), scaled(None, 5, true)), (0, 0));
        assert_eq!(scaled(Some(&IntOrString::Int(7)), 5, true), 7);
    }
}
