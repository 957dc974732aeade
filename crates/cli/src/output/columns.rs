//! kubectl's `custom-columns=HEADER:.path,…`: a table with a column for each path.

use serde_json::Value;

use super::jsonpath::JsonPath;

/// The gap between two columns, and the least width of one, as kubectl has them.
const GAP: usize = 3;
const LEAST: usize = 6;

/// The columns: a title and a path each.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns(Vec<(String, JsonPath)>);

impl Columns {
    /// Reads `HEADER:.path,HEADER:.path`.
    ///
    /// # Errors
    /// The column that is wrong, and the cause.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut columns = Vec::new();
        for part in text.split(',') {
            let column = part.split_once(':').filter(|(_, path)| !path.is_empty());
            let (title, path) = column.ok_or_else(|| format!("{part:?} is not HEADER:.path"))?;
            let path = JsonPath::parse(&relaxed(path)?).map_err(|why| format!("{title}: {path}: {why}"))?;
            columns.push((title.to_owned(), path));
        }
        Ok(Self(columns))
    }

    /// The table: a row for each item.
    ///
    /// # Errors
    /// A path cannot be evaluated on an item.
    pub fn table<'a>(&self, items: impl Iterator<Item = &'a Value>, headers: bool) -> Result<String, String> {
        let mut lines: Vec<Vec<String>> = Vec::new();
        if headers {
            lines.push(self.0.iter().map(|(title, _)| title.clone()).collect());
        }
        for item in items {
            let cells = self.0.iter().map(|(title, path)| {
                let results = path.results(item).map_err(|why| format!("{title}: {why}"))?;
                let shown: Vec<String> = results.concat().iter().map(go_text).collect();
                Ok(if shown.is_empty() {
                    "<none>".to_owned()
                } else {
                    shown.join(",")
                })
            });
            lines.push(cells.collect::<Result<_, String>>()?);
        }
        Ok(aligned(&lines))
    }
}

/// The path as a template: braces and the first dot may be left out.
fn relaxed(path: &str) -> Result<String, String> {
    let inner = path.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let inner = inner.unwrap_or(path);
    if inner.is_empty() || inner.contains(['{', '}']) {
        return Err(format!("{path:?}: give a path such as .name or {{.name}}"));
    }
    Ok(format!("{{.{}}}", inner.strip_prefix('.').unwrap_or(inner)))
}

/// A value as Go's `%v` writes it, without control characters.
fn go_text(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => crate::plain::plain(text),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_text).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(key, value)| format!("{key}:{}", go_text(value)))
                .collect();
            format!("map[{}]", fields.join(" "))
        }
    }
}

fn aligned(lines: &[Vec<String>]) -> String {
    let columns = lines.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let widest = lines.iter().map(|line| line[column].chars().count()).max();
        (widest.unwrap_or_default() + GAP).max(LEAST)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for line in lines {
        for (column, cell) in line.iter().enumerate() {
            text.push_str(cell);
            if column + 1 < columns {
                text.extend(std::iter::repeat_n(' ', widths[column] - cell.chars().count()));
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_column_has_a_header_and_a_path() {
        let items = [
            json!({"name": "a", "taints": ["x", "y"], "of": {"b": 1, "a": null}}),
            json!({"name": "longer\u{1b}", "taints": []}),
        ];
        let columns = Columns::parse("N:.name,T:taints[*],L:{.taints},O:.of").unwrap();
        assert_eq!(
            columns.table(items.iter(), true).unwrap(),
            "N              T        L       O\n\
             a              x,y      [x y]   map[a:<nil> b:1]\n\
             longer\\u{1b}   <none>   []      <none>\n"
        );
        let bare = columns.table(items[..1].iter(), false).unwrap();
        assert_eq!(bare, "a     x,y   [x y]   map[a:<nil> b:1]\n");
        for wrong in ["", "N", "N:", "N:.a,,", "N:{.a", "N:.a}", "N:{a}{b}", "N:.a[x]"] {
            assert!(Columns::parse(wrong).is_err(), "{wrong}");
        }
    }
}
