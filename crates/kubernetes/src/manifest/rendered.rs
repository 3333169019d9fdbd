//! Objects that no single text holds: each node stands where it was written, in one of several files. Never renders
//! anything itself.

use std::sync::Arc;

use super::place::{Place, Position, Source, Span, Step};
use crate::value::Value;

/// Where a node of a rendered object was written, and its children, in the order of its fields or items.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// Which of the files.
    pub source: usize,
    /// The offset at which it begins there.
    pub at: u32,
    /// Its children.
    pub parts: Vec<Origin>,
}

/// Where a rendered object and the instructions that changed it were written.
#[derive(Debug, Default)]
pub struct Origins {
    /// The files.
    pub sources: Arc<[Arc<Source>]>,
    /// The object as a whole.
    pub root: Origin,
    /// Where other files than that of the object wrote a part of it: a patch, an image, a number of replicas.
    pub patched: Vec<(usize, Position)>,
}

impl Origins {
    /// Follows steps as far as they lead: where that is, what stands there, and how many steps were taken.
    pub(super) fn follow<'a, 'v>(
        &self,
        value: &'v Value,
        steps: impl Iterator<Item = Step<'a>>,
    ) -> (&Origin, &'v Value, usize) {
        let (mut origin, mut value, mut taken) = (&self.root, value, 0);
        for step in steps {
            let Some((index, below)) = step.child(value) else { break };
            let Some(next) = origin.parts.get(index) else { break };
            (origin, value, taken) = (next, below, taken + 1);
        }
        (origin, value, taken)
    }

    /// The stretch of each file in which parts of the object stand, in whole lines.
    pub(super) fn extents(&self) -> Vec<(&Source, Span)> {
        let mut ends: Vec<Option<(u32, u32)>> = vec![None; self.sources.len()];
        let mut open = vec![&self.root];
        while let Some(origin) = open.pop() {
            if let Some(end) = ends.get_mut(origin.source) {
                let (first, last) = end.unwrap_or((origin.at, origin.at));
                *end = Some((first.min(origin.at), last.max(origin.at)));
            }
            open.extend(&origin.parts);
        }
        let named = self.sources.iter().zip(ends);
        let extent = |(source, end): (&'_ Arc<Source>, Option<(u32, u32)>)| {
            let (first, last) = end?;
            let (_, start, text) = source.lines(first, last);
            Some((start, start + text.len()))
        };
        named
            .filter_map(|(source, end)| extent((source, end)).map(|(start, end)| (&**source, Span::new(start, end))))
            .collect()
    }

    /// The file of a node, and its place there.
    pub(super) fn place(&self, origin: &Origin) -> Option<(&Arc<Source>, Place)> {
        let source = self.sources.get(origin.source)?;
        let place = source.node_at(origin.at).unwrap_or_else(|| {
            let start = origin.at as usize;
            // A text within a text, such as a patch that stands in a kustomization: to the end of its line.
            let line = source.first_line(Span::new(start, source.text.len()));
            Place { value: line, ..Place::default() }
        });
        Some((source, place))
    }
}
