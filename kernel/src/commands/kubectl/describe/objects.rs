//! Config maps, secrets, service accounts.

use serde_json::Value;

use super::super::failure::Outcome;
use super::super::jsonpath::go_text;
use super::super::resources::Item;
use super::super::verb::Call;
use super::{Page, fields, list, name_and_labels, text};

pub fn config_map(_: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    name_and_labels(item, page);
    page.line(0, "\nData\n====");
    for (key, value) in fields(&item.value, "/data") {
        page.line(0, format!("{key}:\n----\n{}\n", go_text(value)));
    }
    page.line(0, "\nBinaryData\n====");
    for (key, value) in fields(&item.value, "/binaryData") {
        page.line(0, format!("{key}: {} bytes", decoded_length(value)));
    }
    page.line(0, "");
    Ok(())
}

pub fn secret(_: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    name_and_labels(item, page);
    let type_ = text(&item.value, "/type");
    page.line(0, format!("\nType:\t{type_}\n\nData\n===="));
    for (key, value) in fields(&item.value, "/data") {
        if key == "token" && type_ == "kubernetes.io/service-account-token" {
            page.field(0, key, String::from_utf8_lossy(&decoded(value)));
        } else {
            page.field(0, key, format!("{} bytes", decoded_length(value)));
        }
    }
    Ok(())
}

fn decoded(value: &Value) -> Vec<u8> {
    use base64::Engine;
    let text = value.as_str().unwrap_or_default();
    base64::engine::general_purpose::STANDARD.decode(text).unwrap_or_default()
}

/// How many bytes a base64 text stands for.
fn decoded_length(value: &Value) -> usize {
    decoded(value).len()
}

pub fn service_account(_: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    name_and_labels(item, page);
    let secrets = list(&item.value, "/imagePullSecrets").iter().map(|secret| text(secret, "/name").to_owned());
    page.lines(0, "Image pull secrets", secrets);
    Ok(())
}
