//! Quantities: `500m`, `128Mi`, `1.5e3`. <https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/>

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// An amount in thousandths of its unit (thousandths of a CPU, of a byte …).
pub type Millis = i128;

/// Reads a quantity, rounded up to whole thousandths; `None` if it is not one.
pub fn parse(text: &str) -> Option<Millis> {
    let digits_end = text
        .char_indices()
        .find(|&(index, letter)| !(letter.is_ascii_digit() || letter == '.' || (index == 0 && "+-".contains(letter))))
        .map_or(text.len(), |(index, _)| index);
    let (number, suffix) = text.split_at(digits_end);
    let (mantissa, decimals) = decimal(number)?;
    let (numerator, exponent): (i128, i32) = match suffix {
        "" => (1, 0),
        "n" => (1, -9),
        "u" => (1, -6),
        "m" => (1, -3),
        "k" => (1, 3),
        "M" => (1, 6),
        "G" => (1, 9),
        "T" => (1, 12),
        "P" => (1, 15),
        "E" => (1, 18),
        "Ki" => (1 << 10, 0),
        "Mi" => (1 << 20, 0),
        "Gi" => (1 << 30, 0),
        "Ti" => (1 << 40, 0),
        "Pi" => (1 << 50, 0),
        "Ei" => (1 << 60, 0),
        other => (1, other.strip_prefix(['e', 'E'])?.parse().ok().filter(|exponent| (-30..=18).contains(exponent))?),
    };
    let exponent = exponent + 3 - decimals;
    let value = mantissa.checked_mul(numerator)?;
    if exponent >= 0 {
        value.checked_mul(10_i128.checked_pow(exponent as u32)?)
    } else {
        let divisor = 10_i128.checked_pow(exponent.unsigned_abs())?;
        Some(value.div_euclid(divisor) + i128::from(value.rem_euclid(divisor) != 0))
    }
}

/// Digits without the point, and how many stood behind it.
fn decimal(number: &str) -> Option<(i128, i32)> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.trim_start_matches(['+', '-']).is_empty() && fraction.is_empty() {
        return None;
    }
    let mantissa = format!("{whole}{fraction}").parse().ok()?;
    Some((mantissa, fraction.len() as i32))
}

/// Thousandths; an unreadable quantity counts as nothing (validation has refused it before).
pub fn millis(quantity: &Quantity) -> i64 {
    parse(&quantity.0).and_then(|millis| i64::try_from(millis).ok()).unwrap_or(0)
}

/// Whole units, rounded up: bytes of memory, numbers of pods.
pub fn units(quantity: &Quantity) -> i64 {
    let millis = parse(&quantity.0).unwrap_or(0);
    i64::try_from(millis.div_euclid(1000) + i128::from(millis.rem_euclid(1000) != 0)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_and_rounding() {
        for (text, millis) in [
            ("1", 1000),
            ("500m", 500),
            ("0.5", 500),
            (".5", 500),
            ("1.5Gi", 1_610_612_736_000),
            ("2e3", 2_000_000),
            ("100u", 1),
            ("-1", -1000),
            ("1k", 1_000_000),
        ] {
            assert_eq!(parse(text), Some(millis), "{text}");
        }
        for text in ["", "a", "1.5.5", "1KiB", "-", "1e99999"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
