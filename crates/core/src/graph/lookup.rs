//! Finds values in a JSON text: resolves all pointers into a document in one pass, without parsing it into a tree.
//!
//! Time and memory grow with the text and the number of pointers, not with their product.

use std::collections::HashMap;

/// A value of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FoundValue<'a> {
    /// Its text, verbatim.
    pub(super) text: &'a str,
    /// How deep arrays and objects nest in it.
    pub(super) depth: usize,
}

/// A document and the pointers into it that are resolved together.
pub(super) struct Lookup<'a> {
    text: &'a str,
    /// The pointers as a tree; the first place is the whole document.
    places: Vec<Place<'a>>,
    is_json: bool,
}

/// One part of a pointer.
#[derive(Default)]
struct Place<'a> {
    is_wanted: bool,
    names: HashMap<String, usize>,
    /// The places among `names` that can be items of an array, in ascending order.
    items: Vec<(usize, usize)>,
    found: Option<FoundValue<'a>>,
    /// The number of the last visit; 0 before the first. Of two fields with one name the later counts.
    visit: usize,
    /// The visit of the enclosing value in which this one was visited last.
    parent_visit: usize,
}

impl<'a> Lookup<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            places: vec![Place::default()],
            is_json: true,
        }
    }

    /// Returns the bytes of the document.
    pub(super) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Adds a pointer. Call it before [`Lookup::scan`].
    pub(super) fn want(&mut self, pointer: &str) {
        let mut at = 0;
        for name in parts(pointer) {
            at = match self.places[at].names.get(&name) {
                Some(known) => *known,
                None => self.add(at, name),
            };
        }
        self.places[at].is_wanted = true;
    }

    fn add(&mut self, parent: usize, name: String) -> usize {
        let new = self.places.len();
        self.places.push(Place::default());
        if let Some(index) = array_index(&name) {
            self.places[parent].items.push((index, new));
        }
        self.places[parent].names.insert(name, new);
        new
    }

    /// Resolves the pointers; reads nothing if there are none.
    pub(super) fn scan(&mut self) {
        if self.places.len() == 1 && !self.places[0].is_wanted {
            return;
        }
        for place in &mut self.places {
            place.items.sort_unstable();
        }
        let mut scanner = Scanner {
            text: self.text,
            position: 0,
            visits: 0,
        };
        self.is_json = scanner.value(&mut self.places, 0).is_some();
    }

    /// Returns whether the scan found a well-formed document.
    pub(super) fn is_json(&self) -> bool {
        self.is_json
    }

    /// Returns the value at a pointer that was wanted; none if it does not exist.
    pub(super) fn at(&self, pointer: &str) -> Option<FoundValue<'a>> {
        let mut place = &self.places[0];
        for name in parts(pointer) {
            let next = &self.places[*place.names.get(&name)?];
            if next.parent_visit != place.visit {
                return None;
            }
            place = next;
        }
        place.found.filter(|_| place.visit > 0)
    }
}

/// Returns the parts of a pointer, unescaped.
fn parts(pointer: &str) -> impl Iterator<Item = String> {
    let unescaped = |part: &str| part.replace("~1", "/").replace("~0", "~");
    pointer.split('/').skip(1).map(unescaped)
}

fn array_index(name: &str) -> Option<usize> {
    let is_plain = name == "0" || !name.starts_with(['0', '+']);
    name.parse().ok().filter(|_| is_plain)
}

/// A position in a document. Its methods return none where the text is not JSON.
struct Scanner<'a> {
    text: &'a str,
    position: usize,
    visits: usize,
}

impl<'a> Scanner<'a> {
    /// Reads the value of a place and returns its depth. Recurses along pointers only, so the stack is bounded by their length.
    fn value(&mut self, places: &mut [Place<'a>], at: usize) -> Option<usize> {
        self.skip_space();
        let start = self.position;
        self.visits += 1;
        places[at].visit = self.visits;
        let depth = match self.peek()? {
            b'{' if !places[at].names.is_empty() => self.object(places, at)?,
            b'[' if !places[at].items.is_empty() => self.array(places, at)?,
            _ => self.skip_value()?,
        };
        if places[at].is_wanted {
            let text = self.text.get(start..self.position)?;
            places[at].found = Some(FoundValue { text, depth });
        }
        Some(depth)
    }

    fn object(&mut self, places: &mut [Place<'a>], at: usize) -> Option<usize> {
        let visit = places[at].visit;
        let mut depth = 0;
        self.position += 1;
        self.skip_space();
        if self.accept(b'}') {
            return Some(1);
        }
        loop {
            self.skip_space();
            let name = self.name()?;
            self.skip_space();
            if !self.accept(b':') {
                return None;
            }
            let field = places[at].names.get(name.as_ref()).copied();
            depth = depth.max(self.child(places, field, visit)?);
            self.skip_space();
            if self.accept(b'}') {
                return Some(depth + 1);
            }
            if !self.accept(b',') {
                return None;
            }
        }
    }

    fn array(&mut self, places: &mut [Place<'a>], at: usize) -> Option<usize> {
        let visit = places[at].visit;
        let (mut depth, mut index, mut next) = (0, 0, 0);
        self.position += 1;
        self.skip_space();
        if self.accept(b']') {
            return Some(1);
        }
        loop {
            let item = places[at].items.get(next).copied();
            let item = item.filter(|(wanted, _)| *wanted == index);
            next += usize::from(item.is_some());
            let item = item.map(|(_, place)| place);
            depth = depth.max(self.child(places, item, visit)?);
            index += 1;
            self.skip_space();
            if self.accept(b']') {
                return Some(depth + 1);
            }
            if !self.accept(b',') {
                return None;
            }
        }
    }

    fn child(
        &mut self,
        places: &mut [Place<'a>],
        at: Option<usize>,
        visit: usize,
    ) -> Option<usize> {
        let Some(at) = at else {
            return self.skip_value();
        };
        places[at].parent_visit = visit;
        self.value(places, at)
    }

    /// Skips a value and returns its depth. Does not recurse.
    fn skip_value(&mut self) -> Option<usize> {
        self.skip_space();
        let (mut open, mut deepest) = (0_usize, 0);
        loop {
            match self.peek()? {
                b'"' => {
                    self.string()?;
                }
                b'{' | b'[' => {
                    open += 1;
                    deepest = deepest.max(open);
                    self.position += 1;
                }
                b'}' | b']' => {
                    open = open.checked_sub(1)?;
                    self.position += 1;
                }
                b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' if open > 0 => self.position += 1,
                _ => self.skip_literal()?,
            }
            if open == 0 {
                return Some(deepest);
            }
        }
    }

    fn skip_literal(&mut self) -> Option<()> {
        let rest = self.text.as_bytes().get(self.position..)?;
        let is_end = |byte: &u8| b",:]}[{\" \t\n\r".contains(byte);
        let bytes = rest.iter().position(is_end).unwrap_or(rest.len());
        self.position += bytes;
        (bytes > 0).then_some(())
    }

    /// Reads a string and returns its text with the quotes.
    fn string(&mut self) -> Option<&'a str> {
        let start = self.position;
        if !self.accept(b'"') {
            return None;
        }
        loop {
            let rest = self.text.as_bytes().get(self.position..)?;
            let special = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
            self.position += special + 1;
            if rest[special] == b'"' {
                return self.text.get(start..self.position);
            }
            self.position += 1;
        }
    }

    fn name(&mut self) -> Option<std::borrow::Cow<'a, str>> {
        let quoted = self.string()?;
        if quoted.contains('\\') {
            return serde_json::from_str::<String>(quoted).ok().map(Into::into);
        }
        quoted.get(1..quoted.len() - 1).map(Into::into)
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.position += 1;
        }
    }

    fn accept(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.position += usize::from(is_next);
        is_next
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }
}

#[cfg(test)]
mod tests;
