//! `-o custom-columns`: a table whose columns the person makes up.
//! <https://kubernetes.io/docs/reference/kubectl/#custom-columns>

use serde_json::Value;

use super::columns::Aligner;
use super::failure::{Failure, message};
use super::jsonpath::{self, Template};

pub struct CustomColumns {
    columns: Vec<(String, Template)>,
    headers: bool,
}

impl CustomColumns {
    /// `NAME:.metadata.name,IMAGE:.spec.containers[*].image`
    pub fn parse(spec: &str, headers: bool) -> Result<CustomColumns, Failure> {
        if spec.is_empty() {
            return message("custom-columns format specified but no custom columns given");
        }
        let column = |part: &str| {
            let Some((header, path)) = part.split_once(':') else {
                return message(format!("unexpected custom-columns spec: {part}, expected <header>:<json-path-expr>"));
            };
            Ok((header.to_owned(), column_path(path)?))
        };
        Ok(CustomColumns { columns: spec.split(',').map(column).collect::<Result<_, _>>()?, headers })
    }

    /// A line of headers and a line of paths. The headers are always shown.
    pub fn of_file(text: &str) -> Result<CustomColumns, Failure> {
        let mut lines = text.lines();
        let mut words = |what: &str| match lines.next() {
            Some(line) => Ok(line.split_whitespace().map(str::to_owned).collect::<Vec<String>>()),
            None => message(format!(
                "invalid template, missing {what} line. Expected format is one line of space separated headers, one line of space separated column specs."
            )),
        };
        let (headers, paths) = (words("header")?, words("spec")?);
        if headers.len() != paths.len() {
            return message(format!(
                "number of headers ({}) and field specifications ({}) don't match",
                headers.len(),
                paths.len()
            ));
        }
        let columns = headers.into_iter().zip(paths).map(|(header, path)| Ok((header, column_path(&path)?)));
        Ok(CustomColumns { columns: columns.collect::<Result<_, Failure>>()?, headers: true })
    }

    /// A row for each object.
    pub fn table(&self, objects: &[Value]) -> Result<String, Failure> {
        Ok(Aligner::default().align(&self.lines(objects, true)?))
    }

    /// The cells of the rows, and of the header if it is the first time and there is to be one.
    pub fn lines(&self, objects: &[Value], is_first: bool) -> Result<Vec<Vec<String>>, Failure> {
        let header = || self.columns.iter().map(|(header, _)| header.clone()).collect();
        let mut lines: Vec<Vec<String>> = (self.headers && is_first).then(header).into_iter().collect();
        for object in objects {
            let cell = |(_, path): &(String, Template)| {
                let found = path.values(object).map_err(Failure::Message)?;
                let texts: Vec<String> = found.iter().map(jsonpath::go_text).collect();
                Ok(if texts.is_empty() { "<none>".to_owned() } else { texts.join(",") })
            };
            lines.push(self.columns.iter().map(cell).collect::<Result<_, Failure>>()?);
        }
        Ok(lines)
    }
}

/// `x.y`, `.x.y`, `{x.y}` and `{.x.y}` are the same.
pub fn column_path(path: &str) -> Result<Template, Failure> {
    let inside = path.strip_prefix('{').and_then(|path| path.strip_suffix('}')).unwrap_or(path);
    let plain = inside.strip_prefix('.').filter(|rest| !rest.is_empty()).unwrap_or(inside);
    if plain.is_empty() || plain.contains(['{', '}']) {
        return message(
            "unexpected path string, expected a 'name1.name2' or '.name1.name2' or '{name1.name2}' or '{.name1.name2}'",
        );
    }
    jsonpath::parse(&format!("{{.{plain}}}")).map_err(Failure::Message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_row_for_each_object() {
        let columns = CustomColumns::parse("NAME:.metadata.name,PORTS:{.ports[*].n},X:.x.y", true).unwrap();
        let objects = [json!({"metadata": {"name": "a"}, "ports": [{"n": 1}, {"n": 2}]}), json!({"x": {"y": null}})];
        assert_eq!(
            columns.table(&objects).unwrap(),
            "NAME     PORTS    X\na        1,2      <none>\n<none>   <none>   <nil>\n"
        );
    }

    #[test]
    fn wrong_paths_are_told() {
        let problem = CustomColumns::parse("NAME", true).err().map(|failure| failure.text("kubectl get"));
        assert_eq!(
            problem.as_deref(),
            Some("error: unexpected custom-columns spec: NAME, expected <header>:<json-path-expr>\n")
        );
        assert!(CustomColumns::of_file("A B\n.x\n").is_err());
    }
}
