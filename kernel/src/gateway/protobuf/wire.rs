//! The bytes of protobuf: numbered fields, each a number or bytes.
//! <https://protobuf.dev/programming-guides/encoding/>

/// A value as it is on the wire.
#[derive(Clone, Copy)]
pub enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message in their order.
pub fn fields(mut bytes: &[u8]) -> impl Iterator<Item = Result<(u64, Wire<'_>), String>> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let field = field(&mut bytes);
        if field.is_err() {
            bytes = &[];
        }
        Some(field)
    })
}

fn field<'a>(bytes: &mut &'a [u8]) -> Result<(u64, Wire<'a>), String> {
    let key = varint(bytes)?;
    let wire = match key & 7 {
        0 => Wire::Number(varint(bytes)?),
        1 => Wire::Number(little_endian(take(bytes, 8)?)),
        2 => {
            let length = usize::try_from(varint(bytes)?).map_err(|error| error.to_string())?;
            Wire::Bytes(take(bytes, length)?)
        }
        5 => Wire::Number(little_endian(take(bytes, 4)?)),
        other => return Err(format!("protobuf: illegal wireType {other}")),
    };
    Ok((key >> 3, wire))
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Result<&'a [u8], String> {
    let (taken, rest) = bytes.split_at_checked(length).ok_or("unexpected EOF")?;
    *bytes = rest;
    Ok(taken)
}

pub fn varint(bytes: &mut &[u8]) -> Result<u64, String> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(bytes, 1)?[0];
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err("proto: integer overflow".into())
}

/// The bytes of one field; none if it is not there.
pub fn bytes_of(bytes: &[u8], number: u64) -> Result<&[u8], String> {
    let mut found = &[][..];
    for field in fields(bytes) {
        if let (of, Wire::Bytes(bytes)) = field?
            && of == number
        {
            found = bytes;
        }
    }
    Ok(found)
}

/// The number of one field; 0 if it is not there.
pub fn number_of(bytes: &[u8], number: u64) -> Result<u64, String> {
    let mut found = 0;
    for field in fields(bytes) {
        if let (of, Wire::Number(value)) = field?
            && of == number
        {
            found = value;
        }
    }
    Ok(found)
}

pub fn utf8(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|_| "protobuf: a string is not UTF-8".to_owned())
}
