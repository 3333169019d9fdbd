//! The embedded cluster as the world of a pass: every answer is there at once, and every fault is an answer.
//!
//! Never waits, so that a pass is over as soon as it is asked for.

use super::local::Local;
use crate::{
    api::constants::kind,
    engine::{
        cache::place_of,
        key::Place,
        world::{Announcement, Found, Live, Note, Read, Trouble, World},
        write::{Write, Written},
    },
    kubernetes::{status::Status, value::Value},
    model::template,
};

/// The world of one pass.
pub(super) struct Embedded<'l> {
    pub local: &'l mut Local,
    /// The object that the pass is about.
    pub place: Place,
}

impl World for Embedded<'_> {
    async fn read(&mut self, reads: &[Read]) -> Result<Vec<Found>, Trouble> {
        Ok(reads.iter().map(|read| self.read_one(read)).collect())
    }

    async fn write(&mut self, write: &Write) -> Result<Option<Written>, Trouble> {
        self.local.send(write)
    }

    async fn announce(&mut self, announcements: Vec<Announcement>) {
        self.local.announce(announcements);
    }

    fn note(&mut self, note: Note<'_>) {
        if let Note::Broken(rules) = note {
            self.local.refused.extend(rules.iter().map(|rule| (self.place.clone(), rule.clone())));
        }
    }
}

impl Embedded<'_> {
    fn read_one(&mut self, read: &Read) -> Found {
        match read {
            Read::Object(key) => {
                let (resource, place) = (&key.resource, &key.place);
                let found = self.local.store.get(&resource.group, &resource.plural, &place.namespace, &place.name);
                match found {
                    Some(object) => Found::Object(Live {
                        object: object.value.clone(),
                        is_altered: template::is_altered(&object.managers),
                    }),
                    None => Found::Missing(Status::not_found(&resource.group, &resource.plural, &place.name).message),
                }
            }
            Read::List(resource, namespace, label) => {
                let objects = self.local.store.list(&resource.group, &resource.plural, namespace);
                let has_label = |object: &Value| {
                    let label = label.as_ref();
                    label.is_none_or(|(key, value)| object.str_at(&["metadata", "labels", key]) == Some(value))
                };
                let objects = objects.map(|object| object.value.clone());
                Found::List(objects.filter(has_label).collect())
            }
            Read::Token(file) => Found::Token(Err(format!("there is no file {file}"))),
            Read::Send(request) => Found::Answer(self.local.web.answer(&request.url)),
        }
    }
}

impl Local {
    /// Takes in what is announced.
    pub(super) fn announce(&mut self, announcements: Vec<Announcement>) {
        for Announcement { kind, object, event } in announcements {
            let events = match kind {
                kind::ANALYSIS_RUN => &mut self.told,
                kind::EXPERIMENT => &mut self.compared,
                _ => &mut self.events,
            };
            events.push((place_of(&object), event));
        }
    }
}
