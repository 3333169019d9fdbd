//! Fields of objects whose schema is somebody else's: a value of the wrong type is a problem, in the words of Go.
//!
//! Never changes an object.

use super::Problem;
use crate::kubernetes::value::Value;

/// The list at a path of fields; `None` if there is none.
pub fn list<'v>(object: &'v Value, path: &[&str]) -> Result<Option<&'v [Value]>, Problem> {
    let Some(value) = field(object, path)? else { return Ok(None) };
    value.as_list().map(Some).ok_or_else(|| wrong(path, value, "[]interface{}"))
}

/// The text at a path of fields; `None` if there is none.
pub fn text<'v>(object: &'v Value, path: &[&str]) -> Result<Option<&'v str>, Problem> {
    let Some(value) = field(object, path)? else { return Ok(None) };
    value.as_str().map(Some).ok_or_else(|| wrong(path, value, "string"))
}

/// The whole number at a path of fields; `None` if there is none.
pub fn int(object: &Value, path: &[&str]) -> Result<Option<i64>, Problem> {
    match field(object, path)? {
        None => Ok(None),
        Some(Value::Int(number)) => Ok(Some(*number)),
        Some(value) => Err(wrong(path, value, "int64")),
    }
}

/// The object at a path of fields; `None` if there is none.
pub fn map<'v>(object: &'v Value, path: &[&str]) -> Result<Option<&'v Value>, Problem> {
    let Some(value) = field(object, path)? else { return Ok(None) };
    value.as_map().map(|_| Some(value)).ok_or_else(|| wrong(path, value, "map[string]interface{}"))
}

fn field<'v>(object: &'v Value, path: &[&str]) -> Result<Option<&'v Value>, Problem> {
    let mut value = object;
    for (at, key) in path.iter().enumerate() {
        // Go takes a field that is null for one that is not there.
        if value.is_null() {
            return Ok(None);
        }
        let map = value.as_map().ok_or_else(|| wrong(&path[..=at], value, "map[string]interface{}"))?;
        let Some(next) = map.get(key) else { return Ok(None) };
        value = next;
    }
    Ok(Some(value))
}

fn wrong(path: &[&str], value: &Value, expected: &'static str) -> Problem {
    let (shown, kind) = match value {
        Value::Null => ("<nil>".to_owned(), "<nil>"),
        Value::Bool(value) => (value.to_string(), "bool"),
        Value::Int(value) => (value.to_string(), "int64"),
        Value::Float(value) => (value.to_string(), "float64"),
        Value::Str(text) => (text.to_string(), "string"),
        Value::List(_) => (value.to_json(), "[]interface {}"),
        Value::Map(_) => (value.to_json(), "map[string]interface {}"),
    };
    let path: String = path.iter().map(|key| format!(".{key}")).collect();
    Problem::WrongType(format!("{path} accessor error: {shown} is of the type {kind}, expected {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    #[test]
    fn what_is_not_there_is_none_and_what_is_wrong_is_named() {
        let object = value!({"a": {"b": [1], "c": "x", "d": null}});
        assert_eq!(list(&object, &["a", "b"]), Ok(Some(&[Value::Int(1)][..])));
        assert_eq!(text(&object, &["a", "c"]), Ok(Some("x")));
        assert_eq!((text(&object, &["a", "e"]), text(&object, &["a", "d", "e"])), (Ok(None), Ok(None)));
        let problem = |found: Result<Option<&[Value]>, Problem>| found.unwrap_err().to_string();
        assert_eq!(
            problem(list(&object, &["a", "c"])),
            ".a.c accessor error: x is of the type string, expected []interface{}"
        );
        assert_eq!(
            problem(list(&object, &["a", "c", "d"])),
            ".a.c.d accessor error: x is of the type string, expected map[string]interface{}"
        );
    }
}
