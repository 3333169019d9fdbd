//! Links of pages to files outside of `docs/`: right as they are on a git host, and in the built book links to the repository.

use serde_json::Value;

/// What mdbook sends, `[context, book]`, made into the book that it wants back.
pub(crate) fn preprocess(text: &str) -> Result<String, String> {
    let sent: Value = serde_json::from_str(text).map_err(|error| format!("mdbook sends something else: {error}"))?;
    let repository = sent.pointer("/0/config/output/html/git-repository-url").and_then(Value::as_str);
    let repository = repository.ok_or("docs/book.toml has no git-repository-url")?;
    let mut book = sent.get(1).cloned().ok_or("mdbook sends no book")?;
    pages(&mut book, repository);
    Ok(book.to_string())
}

fn pages(value: &mut Value, repository: &str) {
    match value {
        Value::Object(object) => {
            let folders = object.get("path").and_then(Value::as_str).map_or(0, |path| path.matches('/').count());
            if let Some(Value::String(content)) = object.get_mut("content") {
                *content = linked(content, folders, repository);
            }
            object.values_mut().for_each(|value| pages(value, repository));
        }
        Value::Array(list) => list.iter_mut().for_each(|value| pages(value, repository)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A page so many folders below the book's root, with `](../src)` as `](URL/blob/main/src)`.
fn linked(content: &str, folders: usize, repository: &str) -> String {
    let out = format!("]({}", "../".repeat(folders + 1));
    content.replace(&out, &format!("]({repository}/blob/main/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_out_of_the_book_lead_to_the_repository() {
        let sent = r#"[{"config": {"output": {"html": {"git-repository-url": "https://git.example/a"}}}}, {"items": [
            {"Chapter": {"path": "start.md", "content": "[a](../SECURITY.md#x) [b](hosts.md)", "sub_items": []}},
            {"Chapter": {"path": "adr/1.md", "content": "[a](../start.md) [b](../../src/lib.rs)", "sub_items": []}}
        ]}]"#;
        let book: Value = serde_json::from_str(&preprocess(sent).unwrap()).unwrap();
        let content = |number: usize| book["items"][number]["Chapter"]["content"].as_str().unwrap().to_owned();
        assert_eq!(content(0), "[a](https://git.example/a/blob/main/SECURITY.md#x) [b](hosts.md)");
        assert_eq!(content(1), "[a](../start.md) [b](https://git.example/a/blob/main/src/lib.rs)");
    }
}
