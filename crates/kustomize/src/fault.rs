//! What went wrong, and where, before the files have their names back.

use std::fmt;

/// The result of one step of a build.
pub type Res<T> = Result<T, Box<Fault>>;

/// Where something stands: a file by its number, and a line and column that begin with 1. Line 0 is the whole file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, PartialOrd, Ord)]
pub struct At {
    pub file: u32,
    pub line: u32,
    pub column: u32,
}

impl At {
    /// Nowhere in particular.
    pub const NONE: At = At { file: u32::MAX, line: 0, column: 0 };

    pub fn is_known(self) -> bool {
        self.file != u32::MAX
    }
}

/// Why a build stops.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    pub at: At,
    /// A second place that has to do with it, and what it is.
    pub also: Option<(At, String)>,
    pub message: String,
    pub remedy: Option<String>,
}

impl Fault {
    pub fn new(message: impl Into<String>) -> Box<Fault> {
        Box::new(Fault { at: At::NONE, also: None, message: message.into(), remedy: None })
    }

    /// More was asked for than a build may use.
    pub fn budget(message: impl Into<String>) -> Box<Fault> {
        Fault::new(message).remedy("split it, or raise the limit of the source")
    }

    /// Where it is, unless that is known already.
    pub fn at(mut self: Box<Self>, at: At) -> Box<Self> {
        if !self.at.is_known() {
            self.at = at;
        }
        self
    }

    /// Where the instruction stands that failed; what it failed on becomes the second place.
    pub fn on(mut self: Box<Self>, instruction: At, what: &str) -> Box<Self> {
        if !instruction.is_known() || instruction == self.at {
            return self;
        }
        if self.at.is_known() && self.also.is_none() {
            self.also = Some((self.at, what.to_owned()));
        }
        self.at = instruction;
        self
    }

    pub fn also(mut self: Box<Self>, at: At, what: impl Into<String>) -> Box<Self> {
        if self.also.is_none() && at.is_known() && at != self.at {
            self.also = Some((at, what.into()));
        }
        self
    }

    pub fn remedy(mut self: Box<Self>, remedy: impl Into<String>) -> Box<Self> {
        if self.remedy.is_none() {
            self.remedy = Some(remedy.into());
        }
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Adds the place of an instruction to whatever fails in it.
pub trait InstructedBy<T> {
    /// The fault is at `at` if nothing better is known.
    fn or_at(self, at: At) -> Res<T>;
}

impl<T> InstructedBy<T> for Res<T> {
    fn or_at(self, at: At) -> Res<T> {
        self.map_err(|fault| fault.at(at))
    }
}
