//! Whose request to somebody else's server is sent next: each namespace has a share, so that slow hosts of one tenant delay
//! no other.
//!
//! Shares leave room for one namespace more than there are: whoever comes next need not wait for somebody else's server.
//! Never sends anything.

use std::collections::{BTreeMap, VecDeque};

use crate::kubernetes::value::Text;

/// The part of all requests that a namespace may have under way at least, while there is room at all.
const LEAST: usize = 16;

/// The requests that are under way, and those that wait.
#[derive(Debug)]
pub struct Errands {
    limit: usize,
    namespaces: BTreeMap<Text, Share>,
    tickets: u64,
}

#[derive(Debug, Default)]
struct Share {
    running: usize,
    waiting: VecDeque<u64>,
}

impl Errands {
    /// So many may be under way.
    pub fn new(limit: usize) -> Errands {
        Errands { limit, namespaces: BTreeMap::new(), tickets: 0 }
    }

    /// A request of this namespace waits; answers its number.
    pub fn ask(&mut self, namespace: &Text) -> u64 {
        self.tickets += 1;
        self.namespaces.entry(namespace.clone()).or_default().waiting.push_back(self.tickets);
        self.tickets
    }

    /// The number of the request that is sent next, if one may be: of the namespace that has fewest under way.
    pub fn begin(&mut self) -> Option<u64> {
        let running: usize = self.namespaces.values().map(|share| share.running).sum();
        let most = (self.limit / (self.namespaces.len() + 1)).max(self.limit / LEAST).max(1);
        let waits = |share: &&mut Share| !share.waiting.is_empty() && share.running < most;
        let share = self.namespaces.values_mut().filter(waits).min_by_key(|share| share.running)?;
        if running >= self.limit {
            return None;
        }
        share.running += 1;
        share.waiting.pop_front()
    }

    /// A request of this namespace has ended, or is no longer wanted.
    pub fn end(&mut self, namespace: &Text, ticket: u64) {
        let Some(share) = self.namespaces.get_mut(namespace) else { return };
        match share.waiting.iter().position(|waiting| *waiting == ticket) {
            Some(place) => drop(share.waiting.remove(place)),
            None => share.running = share.running.saturating_sub(1),
        }
        if share.running == 0 && share.waiting.is_empty() {
            self.namespaces.remove(namespace);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 64;

    fn started(errands: &mut Errands) -> Vec<u64> {
        std::iter::from_fn(|| errands.begin()).collect()
    }

    #[test]
    fn one_namespace_leaves_room_for_the_next() {
        let mut errands = Errands::new(LIMIT);
        let (noisy, quiet) = (Text::from("noisy"), Text::from("quiet"));
        for _ in 0..200 {
            errands.ask(&noisy);
        }
        assert_eq!(started(&mut errands).len(), LIMIT / 2);
        let ticket = errands.ask(&quiet);
        assert_eq!(started(&mut errands), [ticket], "it waits for nobody");
        errands.end(&quiet, ticket);
        errands.end(&noisy, 1);
        assert_eq!(started(&mut errands), [33], "in its order");
    }

    #[test]
    fn many_namespaces_have_the_least_share_and_never_more_than_all() {
        let mut errands = Errands::new(LIMIT);
        let namespaces: Vec<Text> = (0..40).map(|number| Text::from(format!("n{number}").as_str())).collect();
        let tickets: Vec<(&Text, u64)> = namespaces
            .iter()
            .flat_map(|name| (0..10).map(move |_| name))
            .map(|name| (name, errands.ask(name)))
            .collect();
        let running = started(&mut errands);
        assert_eq!(running.len(), LIMIT);
        let count = |name: &Text| tickets.iter().filter(|(of, ticket)| *of == name && running.contains(ticket)).count();
        assert!(namespaces.iter().all(|name| (1..=LIMIT / LEAST).contains(&count(name))), "all have a turn");
    }

    #[test]
    fn who_no_longer_waits_is_forgotten() {
        let mut errands = Errands::new(LIMIT);
        let shop = Text::from("shop");
        let tickets: Vec<u64> = (0..40).map(|_| errands.ask(&shop)).collect();
        started(&mut errands);
        tickets.iter().for_each(|ticket| errands.end(&shop, *ticket));
        assert!(errands.namespaces.is_empty());
    }
}
