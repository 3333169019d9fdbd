//! The git wire protocol (pkt-line): the capabilities and refs that a host advertises, and what we fetch or push.
//!
//! Speaks version 2 of the protocol, and version 0 with hosts that know no other; one round of questions each, because a
//! store says all it has at once. Pure: bytes in, bytes out.

use bytes::{Bytes, BytesMut};

use crate::kubernetes::foreign;

/// Which of git's programs is talked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// The one that gives.
    Fetch,
    /// The one that takes.
    Push,
}

impl Service {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Service::Fetch => "git-upload-pack",
            Service::Push => "git-receive-pack",
        }
    }
}

/// What stands between two lengths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Packet {
    /// Some bytes.
    Data(Bytes),
    /// The end of a message.
    Flush,
    /// The end of a part of a message.
    Delimiter,
    /// The end of an answer.
    End,
}

/// The longest packet, with its length.
const LONGEST: usize = 65520;

/// Takes the next packet from the front of the buffer; `None` if it is not all there yet.
pub fn take(buffer: &mut BytesMut) -> Result<Option<Packet>, String> {
    let Some(digits) = buffer.get(..4) else { return Ok(None) };
    let length = std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let length = length.and_then(|digits| usize::from_str_radix(digits, 16).ok());
    let special = match length {
        None => return Err(format!("{:?} is no length of a packet", String::from_utf8_lossy(digits))),
        Some(0) => Packet::Flush,
        Some(1) => Packet::Delimiter,
        Some(2) => Packet::End,
        Some(3) => return Err("a packet of length 3".to_owned()),
        Some(length) if length > LONGEST => return Err(format!("a packet of length {length}")),
        Some(length) if buffer.len() < length => return Ok(None),
        Some(length) => {
            let mut packet = buffer.split_to(length).freeze();
            return Ok(Some(Packet::Data(packet.split_off(4))));
        }
    };
    drop(buffer.split_to(4));
    Ok(Some(special))
}

fn line(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(format!("{:04x}{text}\n", text.len() + 5).as_bytes());
}

/// The text of a packet, without the newline at its end.
pub fn text(data: &Bytes) -> Result<&str, String> {
    let text = std::str::from_utf8(data).map_err(|_| "a line that is no text".to_owned())?;
    Ok(text.strip_suffix('\n').unwrap_or(text))
}

/// What a host can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Greeting {
    /// It speaks version 2, with these abilities.
    Two(Vec<String>),
    /// It speaks version 0 or 1, with these abilities, and has listed what it has.
    Zero(Vec<String>, Vec<Listed>),
}

/// A reference of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// What it points at.
    pub id: String,
    /// For a symbolic one, which other.
    pub target: Option<String>,
}

/// Reads a greeting from its packets, which end with a flush.
#[derive(Debug, Default)]
pub struct Greeter {
    /// Whether a preamble of HTTP has to be passed by.
    preamble: bool,
    lines: Vec<String>,
    abilities: Vec<String>,
    bytes: usize,
}

impl Greeter {
    /// Takes a packet; `Some` at the end of the greeting.
    pub fn take(&mut self, packet: Packet, most: usize, bytes: usize) -> Result<Option<Greeting>, String> {
        match packet {
            Packet::Data(data) if self.lines.is_empty() && data.starts_with(b"# service=") => {
                self.preamble = true;
                Ok(None)
            }
            Packet::Flush if self.preamble && self.lines.is_empty() => {
                self.preamble = false;
                Ok(None)
            }
            Packet::Flush => self.finish().map(Some),
            Packet::Data(data) => {
                let text = text(&data)?;
                if let Some(words) = text.strip_prefix("ERR ") {
                    return Err(format!("it says: {}", self::words(words.as_bytes())));
                }
                self.bytes += data.len();
                if self.bytes > bytes {
                    return Err(format!("more than {bytes} bytes of references"));
                }
                if self.lines.len() > most {
                    return Err(format!("more than {most} references"));
                }
                let text = match text.split_once('\0') {
                    Some((text, abilities)) => {
                        self.abilities = abilities.split(' ').map(str::to_owned).collect();
                        text
                    }
                    None => text,
                };
                self.lines.push(text.to_owned());
                Ok(None)
            }
            Packet::Delimiter | Packet::End => Err("a greeting that is cut".to_owned()),
        }
    }

    fn finish(&mut self) -> Result<Greeting, String> {
        let mut lines = std::mem::take(&mut self.lines);
        let abilities = std::mem::take(&mut self.abilities);
        match lines.first().map(String::as_str) {
            Some("version 2") => return Ok(Greeting::Two(lines.split_off(1))),
            Some("version 1") => drop(lines.remove(0)),
            Some(_) | None => {}
        }
        let symbolic = |name: &str| {
            let targets = abilities.iter().filter_map(|ability| ability.strip_prefix("symref=")?.split_once(':'));
            targets.filter(|(from, _)| *from == name).map(|(_, to)| to.to_owned()).next()
        };
        let mut listed = Vec::new();
        for line in &lines {
            let (id, name) = line.split_once(' ').ok_or("a line without a reference")?;
            // What a tag of objects leads to is found by reading the tag. An empty repository lists a line of zeros.
            if name.ends_with("^{}") || id == "shallow" {
                continue;
            }
            check_name(name)?;
            listed.push(Listed { name: name.to_owned(), id: hash(id)?, target: symbolic(name) });
        }
        listed.retain(|listed| listed.name != "capabilities");
        Ok(Greeting::Zero(abilities, listed))
    }
}

/// The longest name of a reference: longer ones no host stores as files.
const NAME_BYTES: usize = 1024;

fn check_name(name: &str) -> Result<(), String> {
    if name.len() > NAME_BYTES {
        return Err(format!("a name of a reference of {} bytes; {NAME_BYTES} are allowed", name.len()));
    }
    Ok(())
}

fn hash(text: &str) -> Result<String, String> {
    match text.len() {
        40 if text.bytes().all(|byte| byte.is_ascii_hexdigit()) => Ok(text.to_owned()),
        64 => Err("hashes of a repository with SHA-256 objects, which is not supported".to_owned()),
        _ => Err("something else than the hash of an object".to_owned()),
    }
}

/// The ability that begins with a name.
fn has_capability(abilities: &[String], name: &str) -> bool {
    abilities
        .iter()
        .any(|ability| ability == name || ability.strip_prefix(name).is_some_and(|rest| rest.starts_with('=')))
}

/// Refuses repositories whose objects have other hashes than ours can have.
pub fn check_format(abilities: &[String]) -> Result<(), String> {
    let format = abilities.iter().find_map(|ability| ability.strip_prefix("object-format="));
    match format {
        None | Some("sha1") => Ok(()),
        Some(_) => Err("hashes of a repository with SHA-256 objects, which is not supported".to_owned()),
    }
}

/// The wish that a reference which is not there be made, with the objects it leads to.
pub fn create(reference: &str, id: &str, pack: &[u8]) -> Bytes {
    let text = format!("{} {id} {reference}\0 report-status {AGENT}", "0".repeat(40));
    let mut out = Vec::with_capacity(text.len() + pack.len() + 16);
    line(&mut out, &text);
    out.extend_from_slice(b"0000");
    out.extend_from_slice(pack);
    out.into()
}

/// Takes a line of what became of that wish: `None` if all is well so far, else the host's words.
pub fn refused(line: &str) -> Option<String> {
    let words = match line.split_once(' ') {
        Some(("unpack", "ok") | ("ok", _)) => return None,
        Some(("ng", rest)) => rest.split_once(' ').map_or(rest, |(_, why)| why),
        Some(_) | None => line,
    };
    Some(words.chars().filter(|c| !c.is_control()).take(200).collect())
}

/// The question which references there are, among those that begin so.
pub fn list(abilities: &[String], prefixes: &[String]) -> Bytes {
    let mut out = command(abilities, "ls-refs");
    line(&mut out, "symrefs");
    for prefix in prefixes {
        line(&mut out, &format!("ref-prefix {prefix}"));
    }
    out.extend_from_slice(b"0000");
    out.into()
}

fn command(abilities: &[String], name: &str) -> Vec<u8> {
    let mut out = Vec::new();
    line(&mut out, &format!("command={name}"));
    if has_capability(abilities, "agent") {
        line(&mut out, AGENT);
    }
    if has_capability(abilities, "object-format") {
        line(&mut out, "object-format=sha1");
    }
    out.extend_from_slice(b"0001");
    out
}

const AGENT: &str = concat!("agent=tidegate/", env!("CARGO_PKG_VERSION"));

/// Reads a line of the answer to [`list`].
pub fn listed(text: &str) -> Result<Listed, String> {
    let mut words = text.split(' ');
    let (Some(id), Some(name)) = (words.next(), words.next()) else { return Err("a line without a reference".into()) };
    check_name(name)?;
    let target = words.find_map(|word| word.strip_prefix("symref-target:")).map(str::to_owned);
    target.as_deref().map_or(Ok(()), check_name)?;
    Ok(Listed { name: name.to_owned(), id: hash(id)?, target })
}

/// What is asked of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wish {
    /// The object to get.
    pub want: String,
    /// Commits that are here.
    pub have: Vec<String>,
    /// Commits whose parents are not here.
    pub shallow: Vec<String>,
    /// How many commits of history.
    pub depth: u32,
}

/// The question for a pack.
pub fn fetch(greeting: &Greeting, wish: &Wish) -> Result<Bytes, String> {
    match greeting {
        Greeting::Two(abilities) => Ok(fetch_two(abilities, wish)),
        Greeting::Zero(abilities, _) => fetch_zero(abilities, wish),
    }
}

fn fetch_two(abilities: &[String], wish: &Wish) -> Bytes {
    let mut out = command(abilities, "fetch");
    for word in ["thin-pack", "no-progress", "ofs-delta"] {
        line(&mut out, word);
    }
    let shallow = abilities.iter().any(|ability| {
        ability.strip_prefix("fetch=").is_some_and(|features| features.split(' ').any(|feature| feature == "shallow"))
    });
    line(&mut out, &format!("want {}", wish.want));
    if shallow {
        wish.shallow.iter().for_each(|id| line(&mut out, &format!("shallow {id}")));
        line(&mut out, &format!("deepen {}", wish.depth));
    }
    wish.have.iter().for_each(|id| line(&mut out, &format!("have {id}")));
    line(&mut out, "done");
    out.extend_from_slice(b"0000");
    out.into()
}

fn fetch_zero(abilities: &[String], wish: &Wish) -> Result<Bytes, String> {
    if !has_capability(abilities, "side-band-64k") {
        return Err("a host that cannot send a pack beside its messages".to_owned());
    }
    let mut out = Vec::new();
    let known = ["multi_ack_detailed", "side-band-64k", "thin-pack", "no-progress", "ofs-delta"];
    let mut words: Vec<&str> = known.into_iter().filter(|name| has_capability(abilities, name)).collect();
    if has_capability(abilities, "agent") {
        words.push(AGENT);
    }
    line(&mut out, &format!("want {} {}", wish.want, words.join(" ")));
    let shallow = has_capability(abilities, "shallow");
    if shallow {
        wish.shallow.iter().for_each(|id| line(&mut out, &format!("shallow {id}")));
        line(&mut out, &format!("deepen {}", wish.depth));
    }
    out.extend_from_slice(b"0000");
    wish.have.iter().for_each(|id| line(&mut out, &format!("have {id}")));
    line(&mut out, "done");
    Ok(out.into())
}

/// A part of the answer to [`fetch`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// The parents of this commit will not come.
    Shallow(String),
    /// The parents of this commit are here, or will be.
    Unshallow(String),
    /// Bytes of the pack.
    Pack(Bytes),
    /// Nothing that matters.
    Nothing,
    /// The pack is complete.
    End,
}

/// Reads the answer to [`fetch`], packet by packet.
#[derive(Debug, Default)]
pub struct Answer {
    packing: bool,
}

impl Answer {
    /// Takes a packet.
    pub fn take(&mut self, packet: Packet) -> Result<Part, String> {
        let data = match packet {
            Packet::Flush | Packet::End if self.packing => return Ok(Part::End),
            // Version 0 ends its shallow part with a flush.
            Packet::Flush | Packet::Delimiter | Packet::End => return Ok(Part::Nothing),
            Packet::Data(data) => data,
        };
        match data.first() {
            Some(1) => {
                self.packing = true;
                Ok(Part::Pack(data.slice(1..)))
            }
            Some(2) => Ok(Part::Nothing),
            Some(3) => Err(format!("it says: {}", words(&data[1..]))),
            Some(_) | None => self.line(text(&data)?),
        }
    }

    fn line(&mut self, text: &str) -> Result<Part, String> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        match word {
            "shallow" => hash(rest).map(Part::Shallow),
            "unshallow" => hash(rest).map(Part::Unshallow),
            "packfile" => {
                self.packing = true;
                Ok(Part::Nothing)
            }
            "ACK" | "NAK" | "ready" | "acknowledgments" | "shallow-info" | "wanted-refs" => Ok(Part::Nothing),
            "ERR" => Err(format!("it says: {}", words(rest.as_bytes()))),
            _ => Err(format!("the line {:?}", words(text.as_bytes()))),
        }
    }
}

/// What a host says, short and without odd characters.
fn words(bytes: &[u8]) -> String {
    foreign::line(String::from_utf8_lossy(bytes).trim()).chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(bytes: &str) -> Result<Vec<Packet>, String> {
        let mut buffer = BytesMut::from(bytes);
        let mut all = Vec::new();
        while let Some(packet) = take(&mut buffer)? {
            all.push(packet);
        }
        Ok(all)
    }

    fn greet(bytes: &str) -> Result<Option<Greeting>, String> {
        let mut greeter = Greeter::default();
        for packet in packets(bytes)? {
            if let Some(greeting) = greeter.take(packet, 10, 4096)? {
                return Ok(Some(greeting));
            }
        }
        Ok(None)
    }

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

    fn packet(text: &str) -> String {
        format!("{:04x}{text}", text.len() + 4)
    }

    #[test]
    fn packets_are_cut_where_their_lengths_say() {
        let data = |text: &'static str| Packet::Data(Bytes::from_static(text.as_bytes()));
        let all = packets("0006a\n00000001000200050").unwrap();
        assert_eq!(all, [data("a\n"), Packet::Flush, Packet::Delimiter, Packet::End, data("0")]);
        assert_eq!(packets("0009abc").unwrap(), [], "not all there yet");
        for wrong in ["0003", "zzzz", "-001", "+001", "fff1", "ffff", "\u{00e9}00"] {
            assert!(packets(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn both_versions_greet() {
        let two = format!(
            "{}0000{}{}{}0000",
            packet("# service=git-upload-pack\n"),
            packet("version 2\n"),
            packet("ls-refs=unborn\n"),
            packet("fetch=shallow\n")
        );
        let abilities = vec!["ls-refs=unborn".to_owned(), "fetch=shallow".to_owned()];
        assert_eq!(greet(&two), Ok(Some(Greeting::Two(abilities))));
        let zero = format!(
            "{}{}{}0000",
            packet(&format!("{A} HEAD\0shallow symref=HEAD:refs/heads/main\n")),
            packet(&format!("{A} refs/tags/v1\n")),
            packet(&format!("{A} refs/tags/v1^{{}}\n")),
        );
        let Ok(Some(Greeting::Zero(abilities, listed))) = greet(&zero) else { panic!("{:?}", greet(&zero)) };
        assert_eq!(abilities, ["shallow", "symref=HEAD:refs/heads/main"]);
        assert_eq!(listed.len(), 2);
        assert_eq!(listed[0].target.as_deref(), Some("refs/heads/main"));
        let denied = packet("ERR no such repository\n");
        assert_eq!(greet(&denied), Err("it says: no such repository".to_owned()));
        let many: String = (0..20).map(|number| packet(&format!("{A} refs/heads/{number}\n"))).collect();
        assert_eq!(greet(&many), Err("more than 10 references".to_owned()));
        assert!(greet(&(packet("<html>") + "0000")).is_err());
    }

    #[test]
    fn sr6_names_of_references_are_bounded_in_bytes() {
        let long = format!("refs/tags/{}", "v".repeat(2000));
        let refused = Err("a name of a reference of 2010 bytes; 1024 are allowed".to_owned());
        assert_eq!(listed(&format!("{A} {long}")).map(drop), refused);
        assert!(listed(&format!("{A} HEAD symref-target:{long}")).is_err());
        assert_eq!(greet(&(packet(&format!("{A} {long}\n")) + "0000")).map(drop), refused);
        let much: String = (0..6).map(|number| packet(&format!("{A} {number}{}\n", "v".repeat(900)))).collect();
        assert_eq!(greet(&much), Err("more than 4096 bytes of references".to_owned()));
    }

    #[test]
    fn sr15_what_a_host_says_does_not_move_the_cursor() {
        let said = greet(&packet("ERR \u{1b}[31mred\r\u{202e}\n")).unwrap_err();
        assert!(!said.contains(['\u{1b}', '\r', '\n']), "{said:?}");
    }

    #[test]
    fn questions_are_as_git_asks_them() {
        let wish = Wish { want: A.into(), have: vec!["b".into()], shallow: vec!["c".into()], depth: 5 };
        let two = Greeting::Two(vec!["agent=x".into(), "fetch=shallow filter".into(), "object-format=sha1".into()]);
        let asked = packets(std::str::from_utf8(&fetch(&two, &wish).unwrap()).unwrap()).unwrap();
        let lines: Vec<String> = asked
            .iter()
            .map(|packet| match packet {
                Packet::Data(data) => text(data).unwrap().to_owned(),
                other => format!("{other:?}"),
            })
            .collect();
        let want = format!("want {A}");
        let expected = [
            "command=fetch",
            AGENT,
            "object-format=sha1",
            "Delimiter",
            "thin-pack",
            "no-progress",
            "ofs-delta",
            &want,
            "shallow c",
            "deepen 5",
            "have b",
            "done",
            "Flush",
        ];
        assert_eq!(lines, expected);
        let zero = Greeting::Zero(vec!["side-band-64k".into(), "shallow".into(), "ofs-delta".into()], Vec::new());
        let asked = fetch(&zero, &wish).unwrap();
        let asked = std::str::from_utf8(&asked).unwrap();
        assert!(asked.starts_with(&format!("004awant {A} side-band-64k ofs-delta\n")), "{asked}");
        assert!(asked.ends_with("000ddeepen 5\n0000000bhave b\n0009done\n"), "{asked}");
        assert!(fetch(&Greeting::Zero(Vec::new(), Vec::new()), &wish).is_err());
        let question = list(&["agent".into()], &["HEAD".into()]);
        assert!(question.ends_with(b"000csymrefs\n0014ref-prefix HEAD\n0000"), "{question:?}");
    }

    #[test]
    fn answers_are_read() {
        let mut answer = Answer::default();
        let mut take = |text: &[u8]| answer.take(Packet::Data(Bytes::copy_from_slice(text)));
        assert_eq!(take(format!("shallow {A}\n").as_bytes()), Ok(Part::Shallow(A.into())));
        assert_eq!(take(b"NAK\n"), Ok(Part::Nothing));
        assert_eq!(take(b"packfile\n"), Ok(Part::Nothing));
        assert_eq!(take(b"\x01PACK"), Ok(Part::Pack(Bytes::from_static(b"PACK"))));
        assert_eq!(take(b"\x03no\x1b[2Jmore"), Err("it says: no\\u{1b}[2Jmore".to_owned()));
        assert_eq!(take(b"hello\n"), Err("the line \"hello\"".to_owned()));
        assert_eq!(take(b"shallow x\n"), Err("something else than the hash of an object".to_owned()));
        assert_eq!(answer.take(Packet::Flush), Ok(Part::End));
        assert!(listed(&format!("{A}{} HEAD", &A[..24])).is_err(), "SHA-256");
        assert!(check_format(&["object-format=sha256".into()]).is_err());
    }

    #[test]
    fn a_branch_is_wished_for_and_refused_in_the_hosts_words() {
        let wish = create("refs/heads/x", &"a".repeat(40), b"PACK");
        let text = String::from_utf8(wish.to_vec()).unwrap();
        let zeros = "0".repeat(40);
        assert!(
            text[4..].starts_with(&format!("{zeros} {} refs/heads/x\0 report-status agent=", "a".repeat(40))),
            "{text:?}"
        );
        assert!(text.ends_with("\n0000PACK"), "{text:?}");
        assert_eq!(usize::from_str_radix(&text[..4], 16).unwrap(), text.len() - "0000PACK".len());
        assert_eq!(refused("unpack ok"), None);
        assert_eq!(refused("ok refs/heads/x"), None);
        assert_eq!(refused("ng refs/heads/x protected branch").as_deref(), Some("protected branch"));
        assert_eq!(refused("unpack missing objects").as_deref(), Some("unpack missing objects"));
    }

    proptest::proptest! {
        /// SR6: whatever arrives, the answer is an answer, and no packet is longer than what there is.
        #[test]
        fn no_bytes_break_the_reading(bytes in "([0-9a-f]{4}|000[0-9a-f]|shallow |ERR |\x01|\x02|[ -~\n\x00]{0,9}){0,40}") {
            let mut buffer = BytesMut::from(bytes.as_str());
            let (mut greeter, mut answer, mut length) = (Greeter::default(), Answer::default(), 0);
            while let Ok(Some(packet)) = take(&mut buffer) {
                if let Packet::Data(data) = &packet {
                    length += data.len();
                }
                drop(greeter.take(packet.clone(), 10, 4096));
                drop(answer.take(packet));
            }
            assert!(length <= bytes.len());
        }
    }
}
