use proptest::prelude::*;
use serde_json::json;

use super::resolve::number_of_float;
use super::*;

/// Rows of two columns, made with sigs.k8s.io/yaml v1.6.0 over go.yaml.in/yaml/v2 v2.4.2.
fn rows(table: &'static str) -> impl Iterator<Item = (String, Option<String>)> {
    table.lines().map(|row| serde_json::from_str(row).unwrap())
}

fn values(text: &str) -> Result<Vec<Value>, SyntaxError> {
    Ok(read(text)?.into_iter().map(|document| document.value).collect())
}

/// Floats of Go's JSON without a fraction are integers to Kubernetes.
fn settled(value: Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            number_of_float(number.as_f64().unwrap()).map_or(Value::Null, Value::Number)
        }
        Value::Array(items) => items.into_iter().map(settled).collect(),
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, settled(value))).collect(),
        other => other,
    }
}

#[test]
fn yaml_means_what_it_means_to_kubectl() {
    for (text, json) in rows(include_str!("testdata/read.jsonl")) {
        let wanted: Option<Value> = json.map(|json| settled(serde_json::from_str(&json).unwrap()));
        match (values(&text), wanted) {
            (Err(_), None) => {}
            (Ok(found), Some(Value::Null)) => assert_eq!(found, [] as [Value; 0], "{text:?}"),
            (Ok(found), Some(wanted)) => assert_eq!(found, [wanted], "{text:?}"),
            (found, wanted) => panic!("{text:?}: found {found:?}, wanted {wanted:?}"),
        }
    }
}

#[test]
fn values_are_printed_as_kubectl_prints_them() {
    for (json, yaml) in rows(include_str!("testdata/print.jsonl")) {
        let value: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(Some(print(&value)), yaml, "{json}");
    }
}

/// Rows of a text, what is wrong with it, and what is wrong with it to a strict reader.
#[test]
fn the_api_hears_go_yaml_s_words() {
    for row in include_str!("testdata/errors.jsonl").lines() {
        let (text, error, strict): (String, String, String) = serde_json::from_str(row).unwrap();
        match first(&text) {
            Err(found) => assert_eq!(found.in_go_words(), error, "{text:?}"),
            Ok(found) => {
                assert_eq!(error, "", "{text:?}");
                let repeated = found.map(|document| document.repeated).unwrap_or_default();
                let wanted: Vec<&str> = strict.lines().skip(1).map(str::trim).collect();
                assert_eq!(repeated, wanted, "{text:?}");
            }
        }
    }
}

/// go-yaml v2 parted from libyaml long ago: it is stricter in some texts, and takes `{b:}` for a key with a colon in its name.
#[test]
fn a_few_texts_are_read_as_libyaml_does_and_not_go_yaml() {
    assert_eq!(values("a: [http://x/?q]").unwrap(), [json!({"a": ["http://x/?q"]})]);
    assert_eq!(values("a: \"x\\/y\"").unwrap(), [json!({"a": "x/y"})]);
    assert!(values("a: {b:}").is_err());
    // An escape that YAML does not know, and go-yaml does.
    assert!(values("a: \"it\\'s\"").is_err());
}

#[test]
fn a_stream_is_cut_at_its_separators() {
    let text = "# nothing\n---\nkind: A\n--- # next\n\n---\n{\"kind\": \"B\"}\n---\nnull\n---\nkind: List\nitems: [{kind: C}]\n...\n";
    let documents = read(text).unwrap();
    let found: Vec<_> = documents.iter().map(|document| (document.line, document.value["kind"].as_str())).collect();
    assert_eq!(found, [(3, Some("A")), (7, Some("B")), (11, Some("List"))]);
    assert_eq!(values("").unwrap(), [] as [Value; 0]);
    assert_eq!(values("\u{feff}a: 1\r\n---\r\nb: 2\r\n").unwrap(), [json!({"a": 1}), json!({"b": 2})]);
}

const DEPLOYMENT: &str = r#"apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels:
    app.kubernetes.io/name: web
spec:
  template:
    spec:
      containers:
      - name: 名前
        image: "nginx:1.27" # web
        ports:
        - containerPort: 80
        - {containerPort: 8080, protocol: TCP}
        args:
"#;

#[test]
fn every_field_has_its_place() {
    let document = &read(DEPLOYMENT).unwrap()[0];
    let place = |path: &str| {
        let Span { line, column, length } = document.place(path);
        (line, column, length)
    };
    let container = "spec.template.spec.containers[0]";
    assert_eq!(place(&format!("{container}.image")), (12, 16, 12));
    assert_eq!(place(&format!("{container}.name")), (11, 15, 2));
    assert_eq!(place(&format!("{container}.ports[1].containerPort")), (15, 27, 4));
    assert_eq!(place("metadata.labels[app.kubernetes.io/name]"), (6, 29, 3));
    assert_eq!(place(".spec.template.spec.containers[name=\"名前\"].image"), (12, 16, 12));
    // A list and an empty value are shown by their key, what is not there by its parent.
    assert_eq!(place(&format!("{container}.ports")), (13, 9, 5));
    assert_eq!(place(&format!("{container}.args")), (16, 9, 4));
    assert_eq!(place(&format!("{container}.resources.limits")), (11, 9, 8));
    assert_eq!(place("spec.replicas"), (7, 1, 4));
    assert_eq!(place(""), (1, 1, 19));
    assert_eq!(document.key_place("kind"), Some(Span { line: 2, column: 1, length: 4 }));
    assert_eq!(document.key_place(container), None);
}

#[test]
fn aliases_have_the_place_of_their_anchor_inside() {
    let document = &read("a: &x\n  b: 1\nc: *x\nd:\n  <<: *x\n").unwrap()[0];
    assert_eq!(document.value, json!({"a": {"b": 1}, "c": {"b": 1}, "d": {"b": 1}}));
    assert_eq!(document.place("c.b").line, 2);
    assert_eq!(document.place("d.b").line, 2);
    assert_eq!(document.place("c").line, 3);
}

#[test]
fn what_kubectl_takes_without_a_word_is_a_warning() {
    let warnings = |text| -> Vec<(u32, String)> {
        read(text).unwrap()[0].warnings.iter().map(|w| (w.span.line, w.message.clone())).collect()
    };
    let duplicate = "image: a\nname: b\nimage: c\n";
    assert_eq!(values(duplicate).unwrap(), [json!({"image": "c", "name": "b"})]);
    assert_eq!(warnings(duplicate), [(3, "`image` stands here and in line 1: only this one counts".to_owned())]);
    assert_eq!(warnings("{\"a\": 1,\n\"a\": 2}")[0].0, 2);
    assert!(warnings("metadata:\n  name:web\n")[0].1.contains("a space after the colon"));
    assert!(warnings("ports: a\n  - b\n")[0].1.contains("no list begins there"));
    assert_eq!(warnings("image: nginx:1.27\nurl:\n  http://x\nx: &x {a: 1}\ny: {<<: *x, a: 2}\n"), []);
}

#[test]
fn errors_say_what_was_expected_and_where() {
    for (text, line, column, message, hint) in [
        ("spec:\n\treplicas: 1\n", 2, 1, "a tab stands where YAML wants spaces", "two spaces"),
        ("a: 1\nimage:nginx\nb: 2\n", 2, 1, "expected `key: value`, found `image:nginx`", "`image: nginx`"),
        ("---\na: b: c\n", 2, 5, "a second `: ` in one line", "in quotes"),
        ("a:\n  b: 1\n   c: 2\n", 3, 4, "a key stands deeper than the line above", "indent it"),
        ("a:\n  b: 1\n c: 2\n", 3, 2, "expected a key in column 1, as in line 1", "starts in column 2"),
        ("a: b\n- c\n", 2, 1, "expected a key in column 1", "side by side"),
        ("x\ny: z\n", 2, 1, "the line above has no colon", ""),
        ("名: \"x\nb: c\n", 1, 4, "this quote is never closed: expected `\"`", ""),
        ("a: [b, c\n", 1, 4, "this `[` is never closed: expected `]`", ""),
        ("{\"a\": 1\n \"b\": 2}\n", 2, 5, "expected `,` or `}` to go on after the `{` in line 1, column 1", ""),
        ("a: [b]]\n", 1, 7, "this `]` closes nothing", ""),
        ("a: 'it's'\n", 1, 8, "the value ended before this", "write `''`"),
        ("a: @b\n", 1, 4, "a value cannot start with '@'", "in quotes"),
        ("a: \"\\d\"\n", 1, 5, "a backslash in double quotes", "single quotes"),
        ("a: {{ x }}\n", 1, 5, "a field name was expected", "template"),
        ("a: *x\n", 1, 4, "no `&x` stands before `*x`", "in quotes"),
        ("a: &x [*x]\n", 1, 8, "`&x` would contain itself", ""),
        ("a: [!x, b]\n", 1, 5, "a tag (`!name`)", "in quotes"),
        ("a: .inf\n", 1, 4, "JSON has no infinity", ""),
        ("a: 1\nb: x\u{7}\n", 2, 5, "the control character U+0007", "escape"),
        ("%YAML 1.1\n---\na: 1\n", 2, 1, "a `%` directive", "leave the line out"),
        ("a: !!int x\n", 1, 4, "`x` cannot be read as !!int", ""),
    ] {
        let error = read(text).unwrap_err();
        assert_eq!((error.span.line, error.span.column), (line, column), "{text:?}: {error}");
        assert!(error.message.starts_with(message), "{text:?}: {error}");
        assert!(error.hint.clone().unwrap_or_default().contains(hint), "{text:?}: {:?}", error.hint);
    }
}

#[test]
fn a_text_being_typed_is_complete_once_it_can_stand() {
    use Completeness::{Complete, Incomplete, Invalid};
    for (text, wanted) in [
        ("", Complete),
        ("kind: Pod\nmetadata:", Complete),
        ("kind: Pod\nmeta", Incomplete),
        ("a: [1, 2", Incomplete),
        ("a: {b: 1,\n", Incomplete),
        ("a: \"b", Incomplete),
        ("{\"a\": 1}\n{\"b\": [", Incomplete),
        ("a: \"b\n---\nc: d", Invalid),
        ("a: b: c", Invalid),
        ("a: 1\nimage:nginx", Invalid),
    ] {
        assert_eq!(completeness(text), wanted, "{text:?}");
    }
}

#[test]
fn a_small_text_cannot_grow_without_bound() {
    let mut laughs = "a0: &a0 [ha]\n".to_owned();
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(",");
        laughs += &format!("a{level}: &a{level} [{aliases}]\n");
    }
    assert!(read(&laughs).unwrap_err().message.contains("out of all proportion"));
    let long = format!("a: &a {}\nb:\n{}", "x".repeat(1 << 20), "- *a\n".repeat(1000));
    assert!(read(&long).unwrap_err().message.contains("out of all proportion"));
}

#[test]
fn nesting_ends_where_serde_json_ends() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("{a: ", "}"), ("- ", "")] {
        let nested = |levels: usize| {
            let inner = if open == "- " { "1" } else { "[]" };
            format!("{}{inner}{}", open.repeat(levels), close.repeat(levels))
        };
        let levels = if open == "- " { 127 } else { 126 };
        let value = values(&nested(levels)).unwrap().remove(0);
        serde_json::from_str::<Value>(&value.to_string()).unwrap();
        assert!(read(&nested(levels + 1)).unwrap_err().message.contains("127 levels"), "{open}");
        assert!(read(&nested(100_000)).is_err());
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        any::<String>(),
        "[ -~\n]{0,12}",
        "[a-z :#'\"\\\\\\-?\n\t]{0,30}",
        "([a-z]{1,9}[ ]{1,2}){20,40}",
        "[-+0-9._eExob:TZ]{1,8}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(|float| number_of_float(float).map_or(Value::Null, Value::Number)),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        // `<<` is printed as it is, by go-yaml too, and read as a merge.
        let key = text.clone().prop_filter("merge key", |key| key != "<<");
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..6).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

/// A manifest with a few characters cut out and a few put in.
fn any_damage() -> impl Strategy<Value = String> {
    let edit = (any::<prop::sample::Index>(), 0..6usize, "[\\-:{}\\[\\],&*!|>'\"%@#?~ \n\t\\\\a0<あ]{0,4}");
    prop::collection::vec(edit, 1..6).prop_map(|edits| {
        let mut text: Vec<char> = DEPLOYMENT.chars().collect();
        for (at, cut, put) in edits {
            let at = at.index(text.len());
            let end = (at + cut).min(text.len());
            text.splice(at..end, put.chars());
            text.push('\n');
        }
        text.into_iter().collect()
    })
}

fn read_and_point(text: &str) {
    match read(text) {
        Ok(documents) => documents.iter().for_each(|document| {
            underline(text, document.place("spec.template.spec.containers[0].image"));
        }),
        Err(error) => {
            underline(text, error.span);
        }
    }
}

proptest! {
    #[test]
    fn what_is_printed_is_read_back(value in any_value()) {
        let value = json!({"value": value});
        prop_assert_eq!(values(&print(&value)), Ok(vec![value.clone()]));
        prop_assert_eq!(values(&value.to_string()), Ok(vec![value]));
    }

    #[test]
    fn no_bytes_are_too_odd(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read_and_point(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn no_text_is_too_odd(text in "[\\-:{}\\[\\],&*!|>'\"%@#?~ \n\t\\\\a0<.あ\u{85}]{0,60}") {
        read_and_point(&text);
    }

    #[test]
    fn no_damage_is_too_great(text in any_damage()) {
        read_and_point(&text);
    }
}
