//! JSONPath as kubectl and CRD columns speak it: `.spec.replicas`, `.status.conditions[?(@.type=="Ready")].status`.
//!
//! A [`Path`] is what stands between braces; a [`Template`] has text around it, and loops. Nothing is printed here.

use super::value::{Text, Value, intern};

/// A path that was understood.
#[derive(Debug, Clone, PartialEq)]
pub struct Path(Vec<Node>);

#[derive(Debug, Clone, PartialEq)]
enum Node {
    /// `.name`, `['name']`
    Field(Text),
    /// `.*`
    Wildcard,
    /// `..`
    Recursive,
    /// `[0]`, `[-1:]`, `[*]`
    Slice(Slice),
    /// `[0,2]`, `['a','b']`
    Union(Vec<Vec<Node>>),
    /// `[?(@.type=="Ready")]`
    Filter { left: Vec<Node>, test: Test, right: Vec<Node> },
    /// A constant within a filter.
    Constant(Value),
    /// A word such as `range`; it leads nowhere by itself.
    Word(Text),
}

/// What a field that is missing means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missing {
    /// It leads nowhere.
    Allowed,
    /// The object has another shape than the path expects.
    Refused,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Slice {
    start: Option<i64>,
    end: End,
    step: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    /// `[2]`: one item.
    Single,
    /// `[2:]`
    Open,
    /// `[2:5]`
    At(i64),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Test {
    Exists,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// How deep filters and unions may be nested: hostile paths must not exhaust the stack.
const DEPTH_LIMIT: usize = 16;

impl Path {
    /// Reads a path; none if it makes no sense.
    pub fn parse(text: &str) -> Option<Path> {
        let nodes = nodes(text, 0)?;
        // A word such as `range` parses upstream and fails when it is evaluated.
        (!nodes.iter().any(|node| matches!(node, Node::Word(_)))).then_some(Path(nodes))
    }

    /// The values it leads to; none if the object has another shape than the path expects. A missing field leads nowhere.
    pub fn find(&self, object: &Value) -> Option<Vec<Value>> {
        walk(&self.0, vec![object.clone()], Missing::Allowed)
    }
}

/// Text with paths in braces, and loops over what they lead to.
#[derive(Debug, Clone, PartialEq)]
pub struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq)]
enum Part {
    /// As it is.
    Text(String),
    /// What a path leads to.
    Path(Vec<Node>),
    /// `{range …}`: what follows, up to its end, for each.
    Range(Vec<Node>),
    /// `{end}`
    End,
}

impl Template {
    /// Reads a template; none if it makes no sense.
    pub fn parse(text: &str) -> Option<Template> {
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some((before, after)) = rest.split_once('{') {
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            let end = action_end(after)?;
            let mut action = nodes(&after[..end], 0)?;
            let word = if let Some(Node::Word(word)) = action.first() { word.to_string() } else { String::new() };
            parts.push(match word.as_str() {
                "range" => Part::Range(action.split_off(1)),
                "end" => Part::End,
                _ => Part::Path(action),
            });
            rest = &after[end + 1..];
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Some(Template(parts))
    }

    /// Everything it leads to, in order; none if the object has another shape than it expects, a field that is missing
    /// among them.
    pub fn find(&self, object: &Value) -> Option<Vec<Value>> {
        let mut found = Vec::new();
        let rest = find_parts(&self.0, object, 0, &mut found)?;
        rest.is_empty().then_some(found)
    }
}

/// Where the braces of an action end; texts in it may hold some.
fn action_end(text: &str) -> Option<usize> {
    let (mut quote, mut previous) = (None, ' ');
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '}') => return Some(at),
            (None, '{') => return None,
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open && previous != '\\' => quote = None,
            (None | Some(_), _) => {}
        }
        previous = c;
    }
    None
}

/// What these parts lead to, up to the end of a loop; answers what follows that.
fn find_parts<'p>(parts: &'p [Part], object: &Value, loops: usize, found: &mut Vec<Value>) -> Option<&'p [Part]> {
    let mut rest = parts;
    while let Some((part, after)) = rest.split_first() {
        rest = after;
        match part {
            Part::Text(text) => found.push(text.as_str().into()),
            Part::Path(nodes) => found.extend(walk(nodes, vec![object.clone()], Missing::Refused)?),
            Part::End if loops == 0 => return None,
            Part::End => return Some(rest),
            Part::Range(nodes) if loops < DEPTH_LIMIT => {
                let each = walk(nodes, vec![object.clone()], Missing::Refused)?;
                let mut behind = find_parts(rest, &Value::Null, loops + 1, &mut Vec::new());
                for item in &each {
                    behind = Some(find_parts(rest, item, loops + 1, found)?);
                }
                rest = behind.unwrap_or_default();
            }
            Part::Range(_) => return None,
        }
    }
    Some(rest)
}

/// Ends the name of a field.
fn is_terminator(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

fn nodes(text: &str, depth: usize) -> Option<Vec<Node>> {
    if depth > DEPTH_LIMIT {
        return None;
    }
    let (mut nodes, mut rest) = (Vec::new(), text);
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        rest = match c {
            '}' => break,
            '\r' | '\n' => return None,
            ' ' | '@' | '$' => after,
            '.' if after.starts_with('.') => {
                if nodes.last() == Some(&Node::Recursive) {
                    return None;
                }
                nodes.push(Node::Recursive);
                let after = &after[1..];
                match after.chars().next() {
                    Some(c) if c == '_' || c.is_alphanumeric() => field(after, &mut nodes),
                    _ => after,
                }
            }
            '.' => field(after, &mut nodes),
            '[' if after.starts_with("?(") => filter(&after[2..], &mut nodes, depth)?,
            '[' => brackets(after, &mut nodes, depth)?,
            '"' | '\'' => quoted(rest, c, &mut nodes)?,
            '+' | '-' | '0'..='9' => number(rest, &mut nodes)?,
            c if c == '_' || c.is_alphabetic() => {
                let end = rest.find(is_terminator).unwrap_or(rest.len());
                match &rest[..end] {
                    "true" => nodes.push(Node::Constant(true.into())),
                    "false" => nodes.push(Node::Constant(false.into())),
                    word => nodes.push(Node::Word(intern(word))),
                }
                &rest[end..]
            }
            _ => return None,
        };
    }
    Some(nodes)
}

/// A field's name, in which a backslash keeps the next character from ending it.
fn field<'a>(text: &'a str, nodes: &mut Vec<Node>) -> &'a str {
    let (mut name, mut chars) = (String::new(), text.char_indices());
    let mut end = text.len();
    while let Some((i, c)) = chars.next() {
        match c {
            '\\' => name.extend(chars.next().map(|(_, c)| c).filter(|c| *c != '\\')),
            c if is_terminator(c) => {
                end = i;
                break;
            }
            c => name.push(c),
        }
    }
    nodes.push(if name == "*" { Node::Wildcard } else { Node::Field(intern(&name)) });
    &text[end..]
}

fn quoted<'a>(text: &'a str, quote: char, nodes: &mut Vec<Node>) -> Option<&'a str> {
    let mut out = String::new();
    let mut chars = text[1..].char_indices();
    while let Some((i, c)) = chars.next() {
        match c {
            c if c == quote => {
                nodes.push(Node::Constant(out.into()));
                return Some(&text[i + 2..]);
            }
            '\n' => return None,
            '\\' => out.push(match chars.next()?.1 {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                c @ ('\\' | '"' | '\'') => c,
                _ => return None,
            }),
            c => out.push(c),
        }
    }
    None
}

fn number<'a>(text: &'a str, nodes: &mut Vec<Node>) -> Option<&'a str> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let length = digits.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(digits.len());
    let (number, rest) = text.split_at(text.len() - digits.len() + length);
    let constant = number.parse().map(Value::Int).or_else(|_| number.parse().map(Value::Float)).ok()?;
    nodes.push(Node::Constant(constant));
    Some(rest)
}

/// What stands in brackets: a quoted name, a slice, or several of them.
fn brackets<'a>(text: &'a str, nodes: &mut Vec<Node>, depth: usize) -> Option<&'a str> {
    let (inner, rest) = text.split_once(']').filter(|(inner, _)| !inner.contains('\n'))?;
    let inner = if inner == "*" { ":" } else { inner };
    if inner.contains(',') {
        let parts = inner.split(',').map(|part| {
            let mut part_nodes = Vec::new();
            if depth >= DEPTH_LIMIT {
                return None;
            }
            bracket(part.trim_matches(' '), &mut part_nodes)?;
            Some(part_nodes)
        });
        nodes.push(Node::Union(parts.collect::<Option<_>>()?));
    } else {
        bracket(inner, nodes)?;
    }
    Some(rest)
}

fn bracket(inner: &str, nodes: &mut Vec<Node>) -> Option<()> {
    if let Some(name) = inner.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        // Upstream reads the name as if it stood after a dot, so dots in it must be escaped or they end it.
        let mut rest = field(name, nodes);
        while let Some(after) = rest.strip_prefix('.') {
            rest = field(after, nodes);
        }
        // What is left leads nowhere, which upstream notices when it is followed.
        if !rest.is_empty() {
            nodes.push(Node::Word(intern(rest)));
        }
        return Some(());
    }
    let mut parts = inner.split(':');
    let number = |text: &str| match text {
        "" => Some(None),
        text if text.starts_with('+') => None,
        text => text.parse::<i64>().ok().map(Some),
    };
    let (start, end, step) = (number(parts.next()?)?, parts.next(), parts.next());
    if parts.next().is_some() {
        return None;
    }
    let end = match end {
        None => End::Single,
        Some(end) => number(end)?.map_or(End::Open, End::At),
    };
    let step = step.map_or(Some(None), number)?;
    nodes.push(Node::Slice(Slice { start, end, step }));
    Some(())
}

fn filter<'a>(text: &'a str, nodes: &mut Vec<Node>, depth: usize) -> Option<&'a str> {
    let (mut quote, mut closed) = (None, false);
    let mut previous = ' ';
    let mut end = None;
    for (i, c) in text.char_indices() {
        match c {
            '\n' => return None,
            '"' | '\'' if quote.is_none() => quote = Some(c),
            '"' | '\'' if previous != '\\' && quote == Some(c) => closed = true,
            ')' if quote.is_some() == closed => {
                end = Some(i);
                break;
            }
            _ => {}
        }
        previous = c;
    }
    let (inner, rest) = text.split_at(end?);
    let rest = rest.strip_prefix(")]")?;
    let is_operator = |c: char| matches!(c, '!' | '<' | '>' | '=');
    let split = inner.find(is_operator).filter(|at| *at > 0);
    let compared = split.and_then(|at| {
        let (left, after) = inner.split_at(at);
        let length = after.find(|c| !is_operator(c))?;
        let (operator, right) = after.split_at(length);
        Some((left, operator, right))
    });
    nodes.push(match compared {
        None => Node::Filter { left: self::nodes(inner, depth + 1)?, test: Test::Exists, right: Vec::new() },
        Some((left, operator, right)) => {
            let test = match operator {
                "==" => Test::Equal,
                "!=" => Test::NotEqual,
                "<" => Test::Less,
                "<=" => Test::LessOrEqual,
                ">" => Test::Greater,
                ">=" => Test::GreaterOrEqual,
                _ => return None,
            };
            Node::Filter { left: self::nodes(left, depth + 1)?, test, right: self::nodes(right, depth + 1)? }
        }
    });
    Some(rest)
}

fn walk(nodes: &[Node], start: Vec<Value>, missing: Missing) -> Option<Vec<Value>> {
    nodes.iter().try_fold(start, |values, node| step(node, &values, missing))
}

fn step(node: &Node, values: &[Value], missing: Missing) -> Option<Vec<Value>> {
    let present = || values.iter().filter(|value| !value.is_null());
    Some(match node {
        Node::Constant(constant) => vec![constant.clone(); values.len()],
        Node::Word(_) => return None,
        Node::Field(name) => {
            let found: Vec<Value> = present().filter_map(|value| value.get(name)).cloned().collect();
            if missing == Missing::Refused && found.is_empty() && !values.is_empty() {
                return None;
            }
            found
        }
        Node::Wildcard => present().flat_map(children).collect(),
        Node::Recursive => {
            let mut all = Vec::new();
            present().for_each(|value| descend(value, &mut all));
            all
        }
        Node::Slice(slice) => {
            let mut all = Vec::new();
            for value in present() {
                match slice.of(value.as_list()?)? {
                    None => return Some(all),
                    Some(items) => all.extend(items),
                }
            }
            all
        }
        Node::Union(parts) => {
            let found = parts.iter().map(|part| walk(part, values.to_vec(), missing)).collect::<Option<Vec<_>>>()?;
            found.into_iter().flatten().collect()
        }
        Node::Filter { left, test, right } => {
            let mut kept = Vec::new();
            for item in values.iter().map(Value::as_list).collect::<Option<Vec<_>>>()?.into_iter().flatten() {
                if passes(item, left, *test, right, missing)? {
                    kept.push(item.clone());
                }
            }
            kept
        }
    })
}

fn children(value: &Value) -> Vec<Value> {
    match value {
        Value::List(items) => items.to_vec(),
        Value::Map(map) => map.values().cloned().collect(),
        _ => Vec::new(),
    }
}

/// Everything below a value, itself first.
fn descend(value: &Value, all: &mut Vec<Value>) {
    let below = children(value);
    if !below.is_empty() {
        all.push(value.clone());
        below.iter().for_each(|child| descend(child, all));
    }
}

impl Slice {
    /// The items it takes: nothing at all if the bounds are wrong, `None` inside if it asks for none.
    fn of(&self, items: &[Value]) -> Option<Option<Vec<Value>>> {
        let length = items.len() as i64;
        let from_end = |n: i64| if n < 0 { n + length } else { n };
        let given = self.start.unwrap_or(0);
        let start = from_end(given);
        let end = match self.end {
            End::Open => length,
            End::At(end) => from_end(end),
            // [-1] is the last item, up to the end; [2] ends before 3.
            End::Single if given + 1 == 0 => length,
            End::Single => from_end(given + 1),
        };
        if start == end {
            return Some(None);
        }
        let step = match self.step {
            None => 1,
            Some(step) => usize::try_from(step).ok().filter(|step| *step > 0)?,
        };
        let (start, end) = (usize::try_from(start).ok()?, usize::try_from(end).ok()?);
        if start >= items.len() || end > items.len() || start > end {
            return None;
        }
        Some(Some(items[start..end].iter().step_by(step).cloned().collect()))
    }
}

/// Whether an item satisfies a filter; none if the two sides cannot be compared.
fn passes(item: &Value, left: &[Node], test: Test, right: &[Node], missing: Missing) -> Option<bool> {
    let side = |nodes: &[Node]| walk(nodes, vec![item.clone()], missing);
    if test == Test::Exists {
        return Some(side(left).is_some_and(|found| !found.is_empty()));
    }
    let (left, right) = match (side(left)?.as_slice(), side(right)?.as_slice()) {
        ([], _) | (_, []) => return Some(false),
        ([left], [right]) => (left.clone(), right.clone()),
        _ => return None,
    };
    let order = match (&left, &right) {
        (Value::Str(a), Value::Str(b)) => a.cmp(b),
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b)?,
        (Value::Bool(a), Value::Bool(b)) if matches!(test, Test::Equal | Test::NotEqual) => a.cmp(b),
        _ => return None,
    };
    Some(match test {
        Test::Exists => true,
        Test::Equal => order.is_eq(),
        Test::NotEqual => order.is_ne(),
        Test::Less => order.is_lt(),
        Test::LessOrEqual => order.is_le(),
        Test::Greater => order.is_gt(),
        Test::GreaterOrEqual => order.is_ge(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::value;

    #[test]
    fn paths_lead_where_kubectl_goes() {
        let object = value!({
            "spec": {"n": 3, "a.b": {"c": 1}, "l": [10, 20, 30, 40], "none": null, "text": "x"},
            "status": {"conditions": [
                {"type": "Ready", "status": "True", "n": 1},
                {"type": "Done", "status": "False", "n": 2, "more": {}},
            ]},
        });
        let rows = [
            (".spec.n", Some(value!([3]))),
            ("$.spec.n", Some(value!([3]))),
            (".spec.missing.deeper", Some(value!([]))),
            (".spec.none", Some(value!([null]))),
            (".spec.none.deeper", Some(value!([]))),
            (".spec.a\\.b.c", Some(value!([1]))),
            (".spec['a\\.b'].c", Some(value!([1]))),
            (".spec.l[0]", Some(value!([10]))),
            (".spec.l[-1]", Some(value!([40]))),
            (".spec.l[-1:]", Some(value!([40]))),
            (".spec.l[1:3]", Some(value!([20, 30]))),
            (".spec.l[::2]", Some(value!([10, 30]))),
            (".spec.l[*]", Some(value!([10, 20, 30, 40]))),
            (".spec.l[2:2]", Some(value!([]))),
            (".spec.l[0,2]", Some(value!([10, 30]))),
            (".spec.l[9]", None),
            (".spec.l[3:1]", None),
            (".spec.text[0]", None),
            (".spec.text.deeper", Some(value!([]))),
            (".status.conditions[?(@.type==\"Ready\")].status", Some(value!(["True"]))),
            (".status.conditions[?(@.type == 'Done')].status", Some(value!(["False"]))),
            (".status.conditions[?(@.type!=\"Ready\")].n", Some(value!([2]))),
            (".status.conditions[?(@.n>1)].type", Some(value!(["Done"]))),
            (".status.conditions[?(@.n>=1)].type", Some(value!(["Ready", "Done"]))),
            (".status.conditions[?(@.n<1.5)].type", None),
            (".status.conditions[?(@.more)].type", Some(value!(["Done"]))),
            (".status.conditions[?(@.type==\"a)b\")].type", Some(value!([]))),
            (".spec[?(@.x==1)]", None),
            (".status.conditions[*].status", Some(value!(["True", "False"]))),
            (".status..type", Some(value!(["Ready", "Done"]))),
            (".status.conditions.*.n", Some(value!([1, 2]))),
        ];
        for (text, expected) in rows {
            let found = Path::parse(text).unwrap_or_else(|| panic!("{text}")).find(&object).map(Value::from);
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn a_template_has_text_and_loops_and_no_field_may_be_missing() {
        let object = value!({"a": 1, "l": [{"v": 2}, {"v": 3}]});
        for (text, found) in [
            ("{.a}", Some(value!([1]))),
            ("x={.a}", Some(value!(["x=", 1]))),
            ("$.a", Some(value!(["$.a"]))),
            ("{range .l[*]}{.v};{end}!", Some(value!([2, ";", 3, ";", "!"]))),
            ("{range .l[*]}{.v}", Some(value!([2, 3]))),
            ("{.missing}", None),
            ("{.l[?(@.v==3)].v}", Some(value!([3]))),
            ("{.l[?(@.v==9)].v}", Some(value!([]))),
            ("{end}", None),
            ("{word}", None),
        ] {
            let ours = Template::parse(text).unwrap().find(&object);
            assert_eq!(ours.map(Value::list), found, "{text}");
        }
        for text in ["{", "{.a", "{{.a}}", "{.a[}"] {
            assert_eq!(Template::parse(text), None, "{text}");
        }
    }

    #[test]
    fn nonsense_is_no_path() {
        for text in
            [".a[", ".a[x]", ".a[?(@.b]", "range", ".a[1:2:3:4]", ".a[?(@.b=1)]", "....a", "#", ".a[?(@.b==\"c)]"]
        {
            assert_eq!(Path::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_path_panics(text in "[.\\[\\]?(@a0*:,'\"=)\\\\ é-]{0,24}") {
            let object = value!({"a": [{"a": "0"}, [1, null]], "0": {"a": 1.5}});
            let _ = Path::parse(&text).map(|path| path.find(&object));
        }
    }
}
