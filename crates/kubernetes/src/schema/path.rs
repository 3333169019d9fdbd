//! Where a walk is: a chain on the stack, turned into text only when there is something to say.

use std::fmt;

/// One step of a path and the way to it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

/// A step into a value.
#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    Root,
    Field(&'a str),
    Key(&'a str),
    Index(usize),
}

impl<'a> Path<'a> {
    /// The whole object.
    pub(super) const ROOT: Path<'static> = Path { parent: None, step: Step::Root };

    /// Into a named field.
    pub(super) fn field(&'a self, name: &'a str) -> Path<'a> {
        Path { parent: Some(self), step: Step::Field(name) }
    }

    /// Into a value of a map.
    pub(super) fn key(&'a self, key: &'a str) -> Path<'a> {
        Path { parent: Some(self), step: Step::Key(key) }
    }

    /// Into an item of a list.
    pub(super) fn index(&'a self, index: usize) -> Path<'a> {
        Path { parent: Some(self), step: Step::Index(index) }
    }

    /// Whether this is the whole object.
    pub(super) fn is_root(&self) -> bool {
        self.parent.is_none()
    }

    /// As the OpenAPI validator and the pruner write it: keys of maps stand after a dot, as fields do.
    pub(super) fn dotted(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, true);
        text
    }

    fn write(&self, out: &mut String, dotted: bool) {
        if let Some(parent) = self.parent {
            parent.write(out, dotted);
        }
        match self.step {
            Step::Root => {}
            Step::Field(name) => {
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(name);
            }
            Step::Key(key) if dotted => {
                out.push('.');
                out.push_str(key);
            }
            Step::Key(key) => {
                out.push('[');
                out.push_str(key);
                out.push(']');
            }
            Step::Index(index) => {
                out.push('[');
                out.push_str(&index.to_string());
                out.push(']');
            }
        }
    }
}

impl fmt::Display for Path<'_> {
    /// As `field.Path` is written: `spec.ports[0].labels[app]`; the whole object is `<nil>`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.write(&mut text, false);
        f.write_str(if text.is_empty() { "<nil>" } else { &text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_of_a_path() {
        let spec = Path::ROOT.field("spec");
        let ports = spec.field("ports");
        let first = ports.index(0);
        let labels = first.field("labels");
        let app = labels.key("app");
        assert_eq!(app.to_string(), "spec.ports[0].labels[app]");
        assert_eq!(app.dotted(), "spec.ports[0].labels.app");
        assert_eq!((Path::ROOT.to_string().as_str(), Path::ROOT.dotted().as_str()), ("<nil>", ""));
    }
}
