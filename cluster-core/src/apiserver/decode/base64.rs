//! Base64 as Go's decoder reads it: line breaks mean nothing, left over bits neither, and a fault has a place that
//! clients see.

/// The bytes of a text.
///
/// # Errors
/// Where Go stops, counted in bytes.
pub fn decode(text: &[u8]) -> Result<Vec<u8>, usize> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    // Of a group of four.
    let (mut letters, mut bits) = (0, 0_u32);
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'\r' | b'\n' => continue,
            b'=' => {
                check_padding(text, at, letters)?;
                bits <<= 6 * (4 - letters);
                bytes.extend_from_slice(&bits.to_be_bytes()[1..letters]);
                return Ok(bytes);
            }
            letter => bits = bits << 6 | value(*letter).ok_or(at)?,
        }
        letters += 1;
        if letters == 4 {
            bytes.extend_from_slice(&bits.to_be_bytes()[1..]);
            (letters, bits) = (0, 0);
        }
    }
    if letters == 0 { Ok(bytes) } else { Err(text.len() - letters) }
}

/// Checks what follows the first `=`, which stands after so many letters of a group.
fn check_padding(text: &[u8], sign: usize, letters: usize) -> Result<(), usize> {
    let next = |from: usize| (from..text.len()).find(|at| !matches!(text[*at], b'\r' | b'\n')).unwrap_or(text.len());
    let mut end = next(sign + 1);
    match letters {
        0 | 1 => return Err(sign),
        2 => match text.get(end) {
            Some(b'=') => end = next(end + 1),
            Some(_) => return Err(end - 1),
            None => return Err(end),
        },
        _ => {}
    }
    if end == text.len() { Ok(()) } else { Err(end) }
}

fn value(letter: u8) -> Option<u32> {
    let value = match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(value.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Found with Go's encoding/base64.
    #[test]
    fn faults_stand_where_go_finds_them() {
        let table: [(&str, Result<&[u8], usize>); 26] = [
            ("", Ok(b"")),
            ("eHk=", Ok(b"xy")),
            ("eA==", Ok(b"x")),
            ("eH\nk=\n", Ok(b"xy")),
            ("v", Err(0)),
            ("vv", Err(0)),
            ("vvv", Err(0)),
            ("vvvv", Ok(b"\xbe\xfb\xef")),
            ("not base64!", Err(3)),
            ("eA=", Err(3)),
            ("eA=x", Err(2)),
            ("eA==x", Err(4)),
            ("=", Err(0)),
            ("a=", Err(1)),
            ("ab=c", Err(2)),
            ("abc=d", Err(4)),
            ("ab\n", Err(1)),
            ("ab\n=", Err(4)),
            ("ab\n=\n=", Ok(b"i")),
            ("ab=\n=\nx", Err(6)),
            ("eB==", Ok(b"x")),
            ("\u{e9}", Err(0)),
            ("a\nb\nc\n", Err(3)),
            ("abcde", Err(4)),
            ("abcd\ne", Err(5)),
            ("abc=\n\n", Ok(b"i\xb7")),
        ];
        for (text, expected) in table {
            assert_eq!(decode(text.as_bytes()).as_deref().map_err(|at| *at), expected, "{text:?}");
        }
    }
}
