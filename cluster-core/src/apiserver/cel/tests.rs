use super::*;
use serde_json::json;

fn run(source: &str) -> Result<Value, String> {
    let environment = Environment::new(vec![("self", Type::Dyn)]);
    let program = compile(source, &environment)?;
    let value = json!({
        "name": "web", "count": 3, "items": [1, 2, 3, 4], "labels": {"app": "web", "tier": "front"}, "none": null,
        "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 443}],
    });
    let bindings = [("self", Value::from_json(&value))];
    program.evaluate(&bindings, &Budget::default()).map_err(|error| error.to_string())
}

#[test]
fn expressions_that_hold() {
    for source in [
        "1 + 2 * 3 == 7 && 7 / 2 == 3 && -7 % 3 == -1 && 1.5 < 2",
        "self.name.startsWith('w') || self.nothing == 1",
        "self.nothing == 1 || self.name == 'web'",
        "self.items.all(i, i > 0) && self.items.exists(i, i == 3) && self.items.exists_one(i, i == 3)",
        "self.items.filter(i, i % 2 == 0).map(i, i * 10) == [20, 40]",
        "self.items.map(i, i > 2, i * 10) == [30, 40]",
        "self.labels.all(k, self.labels[k] != '') && 'app' in self.labels && !('x' in self.labels)",
        "self.ports.map(p, p.name).join(',') == 'a,b'",
        "has(self.name) && !has(self.nothing) && self.none == null",
        "self.?name.orValue('x') == 'web' && self.?nothing.orValue('x') == 'x'",
        "optional.of(1).hasValue() && !optional.none().hasValue() && self[?'name'].value() == 'web'",
        "optional.of(2).optMap(x, x * 2).value() == 4",
        "cel.bind(n, size(self.items), n * n == 16)",
        "self.labels.exists(k, v, k == 'app' && v == 'web') && self.items.all(i, v, v == i + 1)",
        "self.labels.transformList(k, v, v).size() == 2 && self.labels.transformMap(k, v, v + '!').app == 'web!'",
        "self.ports.sortBy(p, -p.port).map(p, p.port) == [443, 80]",
        "[3, 1, 2].isSorted() == false && [1, 2].sum() == 3 && [1, 5].max() == 5 && [1, 5].min() == 1",
        "[1, 2, 3].indexOf(2) == 1 && [1, 2, 1].lastIndexOf(1) == 2",
        "'abc 123'.find('[0-9]+') == '123' && 'a1b2'.findAll('[0-9]') == ['1', '2']",
        "quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('1500m').asApproximateFloat() == 1.5",
        "isQuantity('50k') && !isQuantity('x') && quantity('50k').add(20).compareTo(quantity('50020')) == 0",
        "url('https://example.com:80/path?k=v').getHostname() == 'example.com' && isURL('/a') && !isURL('a')",
        "url('https://[::1]:80/').getPort() == '80' && url('https://a/?k=1&k=2').getQuery()['k'] == ['1', '2']",
        "ip('192.168.0.1').family() == 4 && isIP('::1') && !isIP('1.2.3') && ip.isCanonical('::1')",
        "cidr('10.0.0.0/8').containsIP('10.1.2.3') && cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')",
        "cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8') && cidr('::/0').containsIP('::1')",
        "!format.dns1123Label().validate('web').hasValue() && format.dns1123Label().validate('Web').hasValue()",
        "semver('1.2.3').isLessThan(semver('1.10.0')) && isSemver('v1.0', true) && !isSemver('1.0')",
        "sets.contains([1, 2, 3], [2]) && sets.equivalent([1, 1], [1]) && !sets.intersects([1], [2])",
        "timestamp('2026-01-02T03:04:05Z').getFullYear() == 2026 && duration('90m') == duration('1h30m')",
        "timestamp('2026-01-02T03:04:05Z') + duration('1h') > timestamp('2026-01-02T03:04:05Z')",
        "'%s has %d of %.2f'.format([self.name, 3, 1.5]) == 'web has 3 of 1.50'",
        "'a,b'.split(',') == ['a', 'b'] && 'abc'.substring(1, 2) == 'b' && 'abc'.charAt(0) == 'a'",
        "type(self.count) == int && int('3') == 3 && string(3) == '3' && b'a' == bytes('a')",
        "{'a': 1, 'b': 2}.size() == 2 && [1, ?optional.none(), 2] == [1, 2]",
    ] {
        assert_eq!(run(source), Ok(Value::Bool(true)), "{source}");
    }
}

#[test]
fn what_fails_says_so_in_cels_words() {
    for (source, error) in [
        ("self.nothing == 1", "no such key: nothing"),
        ("self.items[9] == 1", "index out of bounds: 9"),
        ("1 / (self.count - 3) == 1", "division by zero"),
        ("9223372036854775807 + self.count == 1", "integer overflow"),
        ("self.name + self.count == ''", "no such overload"),
        ("[1].all(x, self.nothing)", "no such key: nothing"),
    ] {
        assert_eq!(run(source), Err(error.to_owned()), "{source}");
    }
}

#[test]
fn types_are_checked_before_anything_runs() {
    let spec = Type::object("spec", [("n", Type::Int), ("names", Type::list(Type::String))]);
    let environment = Environment::new(vec![("self", spec)]);
    for (source, error) in [
        ("self.x > 1", "ERROR: <input>:1:5: undefined field 'x'\n | self.x > 1\n | ....^"),
        ("other", "ERROR: <input>:1:1: undeclared reference to 'other' (in container '')\n | other\n | ^"),
        (
            "self.n + 'a'",
            "ERROR: <input>:1:8: found no matching overload for '_+_' applied to '(int, string)'\n | self.n + 'a'\n | .......^",
        ),
        (
            "self.n.startsWith('a')",
            "ERROR: <input>:1:18: found no matching overload for 'startsWith' applied to 'int.(string)'\n | self.n.startsWith('a')\n | .................^",
        ),
        ("[1, 'a']", "ERROR: <input>:1:5: expected type 'int' but found 'string'\n | [1, 'a']\n | ....^"),
        ("self.n.x", "ERROR: <input>:1:7: type 'int' does not support field selection\n | self.n.x\n | ......^"),
    ] {
        assert_eq!(compile(source, &environment).map(|program| program.result), Err(error.to_owned()), "{source}");
    }
    let result = |source: &str| compile(source, &environment).map(|program| program.result.to_string());
    assert_eq!(result("self.names.map(n, n + 'x')"), Ok("list(string)".to_owned()));
    assert_eq!(result("self.n > 1 ? self.n : 0"), Ok("int".to_owned()));
    assert_eq!(result("optional.of(self.n)"), Ok("optional_type(int)".to_owned()));
    assert!(result("self.n >").is_err_and(|error| error.starts_with("ERROR: <input>:1:9: Syntax error:")));
}

#[test]
fn nothing_computes_for_longer_than_it_may() {
    let long = "self.items.all(a, ".repeat(12) + "true" + &")".repeat(12);
    assert_eq!(run(&long), Err("operation cancelled: actual cost limit exceeded".to_owned()));
    let nested = "(".repeat(5000) + "1" + &")".repeat(5000);
    assert!(run(&nested).is_err());
}
