//! `$((…))`: whole numbers, by C's rules.
//! <https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html#tag_19_06_04>

/// How deep brackets may be nested.
const DEPTH_MAX: usize = 50;

/// The variables that an expression reads and sets.
pub trait Variables {
    fn get(&self, name: &str) -> Option<&str>;
    fn set(&mut self, name: &str, value: i64);
}

/// # Errors
/// What the shell says of an expression that it can't read, or of a division by zero.
pub fn evaluate(text: &str, variables: &mut dyn Variables) -> Result<i64, String> {
    let mut reader = Reader { rest: text.trim(), variables, depth: 0 };
    if reader.rest.is_empty() {
        return Ok(0);
    }
    let value = reader.assignment()?;
    if reader.rest.is_empty() { Ok(value) } else { Err("arithmetic syntax error".into()) }
}

/// Operators of two sides, by how weakly they bind.
const LEVELS: &[&[&str]] = &[
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<=", ">=", "<", ">"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

struct Reader<'a> {
    rest: &'a str,
    variables: &'a mut dyn Variables,
    depth: usize,
}

impl Reader<'_> {
    fn accept(&mut self, sign: &str) -> bool {
        match self.rest.strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn name(&self) -> &str {
        let end = self.rest.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(self.rest.len());
        let name = &self.rest[..end];
        if name.starts_with(|c: char| c.is_ascii_digit()) { "" } else { name }
    }

    fn value(&self, name: &str) -> i64 {
        self.variables.get(name).and_then(|text| text.trim().parse().ok()).unwrap_or(0)
    }

    fn assignment(&mut self) -> Result<i64, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err("arithmetic syntax error".into());
        }
        let name = self.name().to_owned();
        let behind = self.rest[name.len()..].trim_start();
        let set = ["=", "+=", "-=", "*=", "/=", "%="]
            .into_iter()
            .find(|sign| !name.is_empty() && behind.starts_with(sign) && !(*sign == "=" && behind.starts_with("==")));
        let value = match set {
            None => self.choice()?,
            Some(sign) => {
                self.rest = behind[sign.len()..].trim_start();
                let right = self.assignment()?;
                let value = match sign {
                    "=" => right,
                    sign => apply(&sign[..1], self.value(&name), right)?,
                };
                self.variables.set(&name, value);
                value
            }
        };
        self.depth -= 1;
        Ok(value)
    }

    fn choice(&mut self) -> Result<i64, String> {
        let condition = self.level(0)?;
        if !self.accept("?") {
            return Ok(condition);
        }
        let yes = self.assignment()?;
        if !self.accept(":") {
            return Err("arithmetic syntax error".into());
        }
        let no = self.assignment()?;
        Ok(if condition != 0 { yes } else { no })
    }

    fn level(&mut self, level: usize) -> Result<i64, String> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.level(level + 1)?;
        loop {
            let longer = |sign: &str| {
                // `<` is not the beginning of `<<`, nor `|` of `||`.
                let doubled = |c: char| self.rest.starts_with(&format!("{c}{c}"));
                sign.len() == 1 && sign.chars().all(|c| "<>|&".contains(c) && doubled(c))
            };
            let found = operators.iter().find(|sign| self.rest.starts_with(**sign) && !longer(sign));
            let Some(sign) = found else { return Ok(left) };
            self.accept(sign);
            let right = self.level(level + 1)?;
            left = apply(sign, left, right)?;
        }
    }

    fn unary(&mut self) -> Result<i64, String> {
        for (sign, step) in [("++", 1), ("--", -1)] {
            if self.rest.starts_with(sign) {
                self.accept(sign);
                let name = self.name().to_owned();
                self.accept(&name);
                let value = self.value(&name).wrapping_add(step);
                self.variables.set(&name, value);
                return Ok(value);
            }
        }
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err("arithmetic syntax error".into());
        }
        let value = if self.accept("!") {
            i64::from(self.unary()? == 0)
        } else if self.accept("-") {
            self.unary()?.wrapping_neg()
        } else if self.accept("+") {
            self.unary()?
        } else if self.accept("~") {
            !self.unary()?
        } else if self.accept("(") {
            let value = self.assignment()?;
            if !self.accept(")") {
                return Err("arithmetic syntax error".into());
            }
            value
        } else {
            self.primary()?
        };
        self.depth -= 1;
        Ok(value)
    }

    fn primary(&mut self) -> Result<i64, String> {
        let name = self.name().to_owned();
        if name.is_empty() {
            let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(self.rest.len());
            let digits = &self.rest[..end];
            let value = match digits.strip_prefix("0x") {
                Some(hex) => i64::from_str_radix(hex, 16),
                None => digits.parse(),
            };
            self.rest = self.rest[end..].trim_start();
            return value.map_err(|_| "arithmetic syntax error".into());
        }
        self.accept(&name);
        let value = self.value(&name);
        for (sign, step) in [("++", 1), ("--", -1)] {
            if self.accept(sign) {
                self.variables.set(&name, value.wrapping_add(step));
            }
        }
        Ok(value)
    }
}

fn apply(sign: &str, left: i64, right: i64) -> Result<i64, String> {
    Ok(match sign {
        "||" => i64::from(left != 0 || right != 0),
        "&&" => i64::from(left != 0 && right != 0),
        "|" => left | right,
        "^" => left ^ right,
        "&" => left & right,
        "==" => i64::from(left == right),
        "!=" => i64::from(left != right),
        "<=" => i64::from(left <= right),
        ">=" => i64::from(left >= right),
        "<" => i64::from(left < right),
        ">" => i64::from(left > right),
        "<<" => left.wrapping_shl(u32::try_from(right).unwrap_or(0)),
        ">>" => left.wrapping_shr(u32::try_from(right).unwrap_or(0)),
        "+" => left.wrapping_add(right),
        "-" => left.wrapping_sub(right),
        "*" => left.wrapping_mul(right),
        _ if right == 0 => return Err("divide by zero".into()),
        "/" => left.wrapping_div(right),
        _ => left.wrapping_rem(right),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    impl Variables for BTreeMap<String, String> {
        fn get(&self, name: &str) -> Option<&str> {
            BTreeMap::get(self, name).map(String::as_str)
        }

        fn set(&mut self, name: &str, value: i64) {
            self.insert(name.to_owned(), value.to_string());
        }
    }

    #[test]
    fn expressions_have_cs_rules() {
        let mut variables = BTreeMap::from([("i".to_owned(), "4".to_owned())]);
        for (text, value) in [
            ("1 + 2 * 3", 7),
            ("(1+2)*3", 9),
            ("i % 3", 1),
            ("i++ + i", 9),
            ("-i", -5),
            ("i < 6 && i != 2", 1),
            ("i > 9 ? 1 : 2", 2),
            ("j = i * 2", 10),
            ("j += 1", 11),
            ("1 << 4 | 1", 17),
            ("", 0),
        ] {
            assert_eq!(evaluate(text, &mut variables), Ok(value), "{text}");
        }
        assert_eq!(evaluate("1 / 0", &mut variables), Err("divide by zero".into()));
        assert!(evaluate("1 +", &mut variables).is_err());
        assert!(evaluate(&"(".repeat(5000), &mut variables).is_err());
        assert!(evaluate(&"-".repeat(5001), &mut variables).is_err());
    }
}
