//! From one type to another: `int("4")`, `string(2.5)`.

use super::Function;
use super::time::{duration_text, parse_duration};
use crate::apiserver::cel::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    ("int(int) -> int", int),
    ("int(uint) -> int", int),
    ("int(double) -> int", int),
    ("int(string) -> int", int),
    ("int(timestamp) -> int", int),
    ("uint(uint) -> uint", uint),
    ("uint(int) -> uint", uint),
    ("uint(double) -> uint", uint),
    ("uint(string) -> uint", uint),
    ("double(double) -> double", double),
    ("double(int) -> double", double),
    ("double(uint) -> double", double),
    ("double(string) -> double", double),
    ("bool(bool) -> bool", bool),
    ("bool(string) -> bool", bool),
    ("string(string) -> string", string),
    ("string(bool) -> string", string),
    ("string(int) -> string", string),
    ("string(uint) -> string", string),
    ("string(double) -> string", string),
    ("string(bytes) -> string", string),
    ("string(timestamp) -> string", string),
    ("string(duration) -> string", string),
    ("string(net.IP) -> string", string),
    ("string(net.CIDR) -> string", string),
    ("bytes(bytes) -> bytes", bytes),
    ("bytes(string) -> bytes", bytes),
    ("timestamp(timestamp) -> timestamp", timestamp),
    ("timestamp(string) -> timestamp", timestamp),
    ("timestamp(int) -> timestamp", timestamp),
    ("duration(duration) -> duration", duration),
    ("duration(string) -> duration", duration),
    ("duration(int) -> duration", duration),
];

fn wrong(value: &Value, wanted: &str) -> String {
    format!("type conversion error from '{}' to '{wanted}'", value.type_name())
}

fn int(args: &[Value]) -> Result<Value, String> {
    let out_of_range = || "integer overflow".to_owned();
    match &args[0] {
        Value::Int(int) => Ok(Value::Int(*int)),
        Value::Uint(uint) => i64::try_from(*uint).map(Value::Int).map_err(|_| out_of_range()),
        Value::Double(double) if double.is_finite() && double.abs() < 9.223_372_036_854_775e18 => {
            Ok(Value::Int(*double as i64))
        }
        Value::Double(_) => Err(out_of_range()),
        Value::String(text) => text.parse().map(Value::Int).map_err(|_| wrong(&args[0], "int")),
        Value::Timestamp(time) => Ok(Value::Int(time.as_second())),
        other => Err(wrong(other, "int")),
    }
}

fn uint(args: &[Value]) -> Result<Value, String> {
    let out_of_range = || "unsigned integer overflow".to_owned();
    match &args[0] {
        Value::Uint(uint) => Ok(Value::Uint(*uint)),
        Value::Int(int) => u64::try_from(*int).map(Value::Uint).map_err(|_| out_of_range()),
        Value::Double(double) if *double >= 0.0 && *double < 1.844_674_407_370_955e19 => {
            Ok(Value::Uint(*double as u64))
        }
        Value::Double(_) => Err(out_of_range()),
        Value::String(text) => text.parse().map(Value::Uint).map_err(|_| wrong(&args[0], "uint")),
        other => Err(wrong(other, "uint")),
    }
}

fn double(args: &[Value]) -> Result<Value, String> {
    match &args[0] {
        Value::Double(double) => Ok(Value::Double(*double)),
        Value::Int(int) => Ok(Value::Double(*int as f64)),
        Value::Uint(uint) => Ok(Value::Double(*uint as f64)),
        Value::String(text) => text.parse().map(Value::Double).map_err(|_| wrong(&args[0], "double")),
        other => Err(wrong(other, "double")),
    }
}

fn bool(args: &[Value]) -> Result<Value, String> {
    match &args[0] {
        Value::Bool(bool) => Ok(Value::Bool(*bool)),
        Value::String(text) => match &**text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            _ => Err(wrong(&args[0], "bool")),
        },
        other => Err(wrong(other, "bool")),
    }
}

fn string(args: &[Value]) -> Result<Value, String> {
    match &args[0] {
        Value::String(text) => Ok(Value::String(text.clone())),
        Value::Bool(bool) => Ok(bool.to_string().into()),
        Value::Int(int) => Ok(int.to_string().into()),
        Value::Uint(uint) => Ok(uint.to_string().into()),
        Value::Double(double) => Ok(double.to_string().into()),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.into()),
            Err(_) => Err("invalid UTF-8 in bytes, cannot convert to string".to_owned()),
        },
        Value::Timestamp(time) => Ok(time.to_string().into()),
        Value::Duration(duration) => Ok(duration_text(*duration).into()),
        Value::Ip(ip) => Ok(ip.to_string().into()),
        Value::Cidr(cidr) => Ok(cidr.to_string().into()),
        other => Err(wrong(other, "string")),
    }
}

fn bytes(args: &[Value]) -> Result<Value, String> {
    match &args[0] {
        Value::Bytes(bytes) => Ok(Value::Bytes(bytes.clone())),
        Value::String(text) => Ok(Value::Bytes(text.as_bytes().into())),
        other => Err(wrong(other, "bytes")),
    }
}

fn timestamp(args: &[Value]) -> Result<Value, String> {
    let refused = || wrong(&args[0], "timestamp");
    match &args[0] {
        Value::Timestamp(time) => Ok(Value::Timestamp(*time)),
        Value::String(text) => text.parse().map(Value::Timestamp).map_err(|_| refused()),
        Value::Int(seconds) => {
            jiff::Timestamp::from_second(*seconds).map(Value::Timestamp).map_err(|_| "timestamp overflow".to_owned())
        }
        _ => Err(refused()),
    }
}

fn duration(args: &[Value]) -> Result<Value, String> {
    match &args[0] {
        Value::Duration(duration) => Ok(Value::Duration(*duration)),
        Value::String(text) => parse_duration(text).map(Value::Duration).ok_or_else(|| wrong(&args[0], "duration")),
        Value::Int(nanoseconds) => Ok(Value::Duration(jiff::SignedDuration::from_nanos(*nanoseconds))),
        other => Err(wrong(other, "duration")),
    }
}
