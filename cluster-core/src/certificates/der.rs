//! DER as X.509 needs it: a tag, a length, what is in it. (ITU-T X.690)

pub const BOOLEAN_TRUE: &[u8] = &[0x01, 0x01, 0xff];

/// A tag of one byte with its content.
pub fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    match content.len() {
        short @ 0..0x80 => bytes.push(short as u8),
        long => {
            let length = long.to_be_bytes();
            let length: Vec<u8> = length.into_iter().skip_while(|byte| *byte == 0).collect();
            bytes.push(0x80 | length.len() as u8);
            bytes.extend(length);
        }
    }
    bytes.extend(content);
    bytes
}

pub fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    element(0x30, &parts.concat())
}

pub fn set(parts: &[&[u8]]) -> Vec<u8> {
    element(0x31, &parts.concat())
}

/// A part with a number of its own instead of its type.
pub fn tagged(number: u8, content: &[u8]) -> Vec<u8> {
    element(0xa0 | number, content)
}

pub fn octets(content: &[u8]) -> Vec<u8> {
    element(0x04, content)
}

pub fn text(text: &str) -> Vec<u8> {
    element(0x0c, text.as_bytes())
}

/// A number that is not negative, from its big-endian bytes.
pub fn integer(bytes: &[u8]) -> Vec<u8> {
    let digits: Vec<u8> = bytes.iter().copied().skip_while(|byte| *byte == 0).collect();
    // A leading bit would be a sign.
    let sign = digits.first().is_none_or(|first| *first >= 0x80);
    element(0x02, &[&[0][..usize::from(sign)], &digits].concat())
}

/// Bits, the first one highest, without those at the end that are not set.
pub fn named_bits(bits: &[u8]) -> Vec<u8> {
    let Some(last) = bits.iter().max() else { return element(0x03, &[0]) };
    let mut bytes = vec![0_u8; usize::from(last / 8) + 1];
    bits.iter().for_each(|bit| bytes[usize::from(bit / 8)] |= 0x80 >> (bit % 8));
    element(0x03, &[&[7 - last % 8], bytes.as_slice()].concat())
}

/// Whole bytes as bits.
pub fn bits(bytes: &[u8]) -> Vec<u8> {
    element(0x03, &[&[0], bytes].concat())
}

pub fn object_identifier(numbers: &[u32]) -> Vec<u8> {
    let [first, second, rest @ ..] = numbers else { return element(0x06, &[]) };
    let mut bytes = Vec::new();
    for number in std::iter::once(&(first * 40 + second)).chain(rest) {
        let groups = (1..5).rev().map(|group| (number >> (7 * group)) as u8 & 0x7f);
        bytes.extend(groups.skip_while(|group| *group == 0).map(|group| group | 0x80));
        bytes.push(*number as u8 & 0x7f);
    }
    element(0x06, &bytes)
}

/// A moment: with two digits for the year until 2049.
pub fn time(at: jiff::Timestamp) -> Vec<u8> {
    let at = at.to_zoned(jiff::tz::TimeZone::UTC);
    match at.year() {
        1950..2050 => element(0x17, at.strftime("%y%m%d%H%M%SZ").to_string().as_bytes()),
        _ => element(0x18, at.strftime("%Y%m%d%H%M%SZ").to_string().as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_as_short_as_can_be() {
        assert_eq!(integer(&[0, 0, 1]), [2, 1, 1]);
        assert_eq!(integer(&[0x80]), [2, 2, 0, 0x80]);
        assert_eq!(integer(&[0]), [2, 1, 0]);
        assert_eq!(named_bits(&[0, 2]), [3, 2, 5, 0xa0]);
        assert_eq!(named_bits(&[8]), [3, 3, 7, 0, 0x80]);
        assert_eq!(object_identifier(&[1, 2, 840, 113_549]), [6, 6, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d]);
        assert_eq!(element(4, &[7; 200])[..3], [4, 0x81, 200]);
        assert_eq!(time(jiff::Timestamp::UNIX_EPOCH), b"\x17\x0d700101000000Z");
    }
}
