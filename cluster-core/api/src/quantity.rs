//! Quantities: `500m`, `128Mi`, `1.5e3`. <https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/>

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// An amount in thousandths of its unit (thousandths of a CPU, of a byte …).
pub type Millis = i128;

/// A quantity exactly, in thousand-millionths of its unit; smaller parts are rounded up.
type Nanos = i128;

const NANOS: Nanos = 1_000_000_000;

/// The largest amount there is: more than this counts as this.
const MAX: Nanos = (i64::MAX as Nanos) * NANOS;

const FORMAT_WRONG: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const SUFFIX_WRONG: &str = "unable to parse quantity's suffix";

/// How a quantity was written, and is shown again.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Format {
    /// `1536Mi`
    BinarySi,
    /// `1500m`
    DecimalSi,
    /// `2e9`
    DecimalExponent,
}

/// Reads a quantity, rounded up to whole thousandths; `None` if it is not one.
pub fn parse(text: &str) -> Option<Millis> {
    read(text).ok().map(|(nanos, _)| round_up(nanos, NANOS / 1000))
}

/// The way in which the API shows this quantity: without fractions, with the largest suffix that leaves none. The error
/// is the API's.
pub fn canonical(text: &str) -> Result<String, &'static str> {
    read(text).map(|(nanos, format)| show(nanos, format))
}

/// The canonical quantity, rounded up to thousandths: what becomes of an amount in a list of resources.
pub fn rounded(quantity: &Quantity) -> Quantity {
    match read(&quantity.0) {
        Ok((nanos, format)) => Quantity(show(round_up(nanos, NANOS / 1000) * (NANOS / 1000), format)),
        Err(_) => quantity.clone(),
    }
}

/// All of them together, shown as the first one is.
pub fn sum<'a>(quantities: impl Iterator<Item = &'a Quantity>) -> Quantity {
    let mut total = None;
    for (nanos, format) in quantities.filter_map(|quantity| read(&quantity.0).ok()) {
        let (sum, format) = total.map_or((0, format), |(sum, first)| (sum, first));
        total = Some((sum + nanos, format));
    }
    let (nanos, format) = total.unwrap_or((0, Format::DecimalSi));
    Quantity(show(nanos, format))
}

fn round_up(nanos: Nanos, unit: Nanos) -> i128 {
    nanos.div_euclid(unit) + i128::from(nanos.rem_euclid(unit) != 0)
}

fn read(text: &str) -> Result<(Nanos, Format), &'static str> {
    if text.is_empty() {
        return Err(FORMAT_WRONG);
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, rest) = unsigned.split_at(digits(unsigned));
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(digits(rest)),
        None => ("", rest),
    };
    let letters = suffix.bytes().take_while(|byte| b"eEinumkKMGTP".contains(byte)).count();
    let exponent = suffix[letters..].strip_prefix(['+', '-']).unwrap_or(&suffix[letters..]);
    if !exponent.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(FORMAT_WRONG);
    }
    let (factor, exponent, format) = interpret(suffix).ok_or(SUFFIX_WRONG)?;
    let nanos = scaled(whole, fraction, factor, exponent);
    Ok((if text.starts_with('-') { -nanos } else { nanos }, format))
}

/// What a suffix multiplies by: a factor, and a power of ten.
fn interpret(suffix: &str) -> Option<(i128, i32, Format)> {
    let decimal = |exponent| Some((1, exponent, Format::DecimalSi));
    let binary = |power: u32| Some((1 << (10 * power), 0, Format::BinarySi));
    match suffix {
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "" => decimal(0),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        other => {
            let exponent = other.strip_prefix(['e', 'E'])?.parse().ok()?;
            Some((1, exponent, Format::DecimalExponent))
        }
    }
}

/// `whole.fraction * factor * 10^exponent` in nanos, rounded up.
fn scaled(whole: &str, fraction: &str, factor: i128, exponent: i32) -> Nanos {
    // No more digits than a sum of two amounts still holds.
    let fraction = &fraction[..fraction.len().min(15)];
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return 0;
    }
    let exponent = exponent.saturating_sub(fraction.len() as i32).saturating_add(9);
    let value = digits.parse::<i128>().ok().and_then(|digits| digits.checked_mul(factor));
    let power = |exponent: u32| 10_i128.checked_pow(exponent);
    match (value, exponent >= 0) {
        (None, _) => MAX,
        (Some(value), true) => power(exponent.unsigned_abs())
            .and_then(|power| value.checked_mul(power))
            .map_or(MAX, |nanos| nanos.min(MAX)),
        (Some(value), false) => power(exponent.unsigned_abs()).map_or(1, |power| round_up(value, power)).min(MAX),
    }
}

fn show(nanos: Nanos, format: Format) -> String {
    if nanos == 0 {
        return "0".into();
    }
    let binary = format == Format::BinarySi && nanos.abs() >= 1024 * NANOS;
    if binary {
        let (mut amount, mut power) = (round_up(nanos, NANOS), 0);
        while amount % 1024 == 0 && power < 6 {
            (amount, power) = (amount / 1024, power + 1);
        }
        return format!("{amount}{}", ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][power]);
    }
    let (mut amount, mut exponent) = (nanos, -9);
    while amount % 1000 == 0 && exponent < 18 {
        (amount, exponent) = (amount / 1000, exponent + 3);
    }
    match (format, exponent) {
        (_, 0) => amount.to_string(),
        (Format::DecimalExponent, exponent) => format!("{amount}e{exponent}"),
        (_, exponent) => {
            let suffixes = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
            format!("{amount}{}", suffixes[((exponent + 9) / 3) as usize])
        }
    }
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
        for text in ["", "a", "1.5.5", "1KiB", "1K", "1e"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_api_shows_no_fractions() {
        for (text, shown) in [
            ("1.5Gi", "1536Mi"),
            ("0.5", "500m"),
            ("1000", "1k"),
            ("1024Mi", "1Gi"),
            ("1000Mi", "1000Mi"),
            ("0.1Gi", "107374183"),
            ("2e9", "2e9"),
            ("1.5e3", "1500"),
            ("500Mi", "500Mi"),
            ("0.5Ki", "512"),
            ("-1.5", "-1500m"),
            ("+5", "5"),
            ("0", "0"),
            ("1e99999", "9223372036854775807"),
        ] {
            assert_eq!(canonical(text), Ok(shown.into()), "{text}");
        }
        assert_eq!(canonical("1gb"), Err(FORMAT_WRONG));
        assert_eq!(canonical("1K"), Err(SUFFIX_WRONG));
        assert_eq!(rounded(&Quantity("100u".into())), Quantity("1m".into()));
        assert_eq!(sum([Quantity("1500m".into()), Quantity("2".into())].iter()), Quantity("3500m".into()));
    }
}
