//! Who signed a commit or a tag, and whether that counts.
//!
//! Only ssh signatures can be checked. Everything else is refused: no signature, another kind of signature, a key that is
//! not listed, one listed for other purposes or other times. Never lets anything pass on doubt.

use std::collections::BTreeMap;

use git2::{ObjectType, Oid};
use jiff::{Timestamp, civil, tz::TimeZone};
use russh::keys::{
    PublicKey,
    ssh_key::{SshSig, public::KeyData},
};

use super::{Error, Fetched, Reached, Store, store::Tag};
use crate::model::git_source::Signed;

/// Which signatures count.
#[derive(Debug, Clone)]
pub struct Policy {
    signed: Signed,
    signers: Vec<Signer>,
}

/// A key that counts.
#[derive(Debug, Clone)]
struct Signer {
    principal: String,
    key: PublicKey,
    after: Option<Timestamp>,
    before: Option<Timestamp>,
}

/// The key of a Secret that holds the list.
const LIST: &str = "allowed_signers";
/// What git signs for.
const NAMESPACE: &str = "git";

impl Policy {
    /// Takes what a Secret holds.
    pub fn from_secret(signed: Signed, data: &BTreeMap<String, Vec<u8>>) -> Result<Policy, Error> {
        let wrong = |cause: String| Error::Credentials { remote: "signatures".to_owned(), cause };
        let list = data.get(LIST).ok_or_else(|| {
            wrong(format!(
                "the key {LIST} is missing; signatures are checked with ssh keys, OpenPGP keys are not supported"
            ))
        })?;
        let list = std::str::from_utf8(list).map_err(|_| wrong(format!("the key {LIST} is no text")))?;
        Policy::new(signed, list).map_err(wrong)
    }

    /// Takes a list in the format of `ssh-keygen`.
    pub fn new(signed: Signed, list: &str) -> Result<Policy, String> {
        let mut signers = Vec::new();
        for (number, line) in list.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let signer = signer(line).map_err(|cause| format!("line {} of {LIST}: {cause}", number + 1))?;
            signers.extend(signer);
        }
        if signers.is_empty() {
            return Err(format!("{LIST} names nobody who may sign"));
        }
        Ok(Policy { signed, signers })
    }

    /// Who signed, if that counts.
    fn judge(&self, signature: &str, content: &[u8], time: Timestamp) -> Result<String, String> {
        if signature.contains("BEGIN PGP") {
            return Err("it is signed with OpenPGP, which cannot be checked here; sign with an ssh key".to_owned());
        }
        if !signature.contains("BEGIN SSH SIGNATURE") {
            return Err("its signature is of a kind that cannot be checked here; sign with an ssh key".to_owned());
        }
        // Programs that make commits with libgit2 leave an empty line at the end of it, which git does not mind.
        let signature =
            SshSig::from_pem(signature.trim_end()).map_err(|_| "its signature cannot be read".to_owned())?;
        let same = |signer: &&Signer| signer.key.key_data() == signature.public_key();
        let listed: Vec<&Signer> = self.signers.iter().filter(same).collect();
        let Some(first) = listed.first() else {
            let print = fingerprint(signature.public_key());
            return Err(format!("it is signed with the key {print}, which is not among the allowed signers"));
        };
        let good = first.key.verify(NAMESPACE, content, &signature);
        good.map_err(|_| "its signature does not fit its content".to_owned())?;
        let in_time = |signer: &&&Signer| {
            signer.after.is_none_or(|after| time >= after) && signer.before.is_none_or(|before| time < before)
        };
        match listed.iter().find(in_time) {
            Some(signer) => Ok(signer.principal.clone()),
            None => Err(format!("the key of {} does not count at the time of signing", first.principal)),
        }
    }
}

fn fingerprint(key: &KeyData) -> String {
    key.fingerprint(russh::keys::HashAlg::Sha256).to_string()
}

/// A line of the list; `None` if it is about other things than git.
fn signer(line: &str) -> Result<Option<Signer>, String> {
    let (principal, rest) = word(line);
    let (mut after, mut before, mut for_git) = (None, None, true);
    let unknown = || "there is no key, or an option that is not known".to_owned();
    let key = match PublicKey::from_openssh(rest) {
        Ok(key) => key,
        Err(_) => {
            let (options, rest) = word(rest);
            for option in split(options) {
                let (name, value) = option.split_once('=').unwrap_or((option, ""));
                let value = value.trim_matches('"');
                match name.to_ascii_lowercase().as_str() {
                    "namespaces" => for_git = value.split(',').any(|name| name == NAMESPACE),
                    "valid-after" => after = Some(time(value)?),
                    "valid-before" => before = Some(time(value)?),
                    "cert-authority" => {
                        return Err("authorities are not supported; list the keys themselves".to_owned());
                    }
                    _ => return Err(unknown()),
                }
            }
            PublicKey::from_openssh(rest).map_err(|_| unknown())?
        }
    };
    Ok(for_git.then(|| Signer { principal: principal.to_owned(), key, after, before }))
}

/// Options, which commas separate unless they are in quotes.
fn split(options: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    options.split(move |c: char| {
        quoted ^= c == '"';
        c == ',' && !quoted
    })
}

/// The first word of a line and what follows; blanks in quotes do not end it.
fn word(text: &str) -> (&str, &str) {
    let mut quoted = false;
    let end = text.find(|c: char| {
        quoted ^= c == '"';
        c.is_whitespace() && !quoted
    });
    match end {
        Some(end) => (&text[..end], text[end..].trim_start()),
        None => (text, ""),
    }
}

/// `YYYYMMDD[HHMM[SS]]`, with a `Z` or without: the time of the list is UTC.
fn time(text: &str) -> Result<Timestamp, String> {
    let wrong = || format!("{text:?} is no time such as 20260131Z");
    let digits = text.trim_end_matches(['Z', 'z']);
    if !digits.is_ascii() || !matches!(digits.len(), 8 | 12 | 14) {
        return Err(wrong());
    }
    let number =
        |from: usize, to: usize| digits.get(from..to).map_or(Ok(0), |part| part.parse::<i8>().map_err(|_| wrong()));
    let year = digits[..4].parse::<i16>().map_err(|_| wrong())?;
    let (month, day, hour, minute, second) =
        (number(4, 6)?, number(6, 8)?, number(8, 10)?, number(10, 12)?, number(12, 14)?);
    let moment = civil::DateTime::new(year, month, day, hour, minute, second, 0).map_err(|_| wrong())?;
    moment.to_zoned(TimeZone::UTC).map(|zoned| zoned.timestamp()).map_err(|_| wrong())
}

impl Store {
    /// Checks what a reference led to; answers with who signed.
    pub fn verify(&self, fetched: &Fetched, policy: &Policy) -> Result<Vec<String>, Error> {
        let mut who = Vec::new();
        if matches!(policy.signed, Signed::Tag | Signed::TagAndCommit) {
            who.push(self.verify_tag(fetched, policy)?);
        }
        if matches!(policy.signed, Signed::Commit | Signed::TagAndCommit) {
            who.push(self.verify_commit(&fetched.commit, policy)?);
        }
        who.dedup();
        Ok(who)
    }

    /// Checks a commit that the reference is not at any more: a tag that must be signed is one of those that are here.
    pub fn verify_earlier(&self, commit: &str, policy: &Policy) -> Result<Vec<String>, Error> {
        let plain = Fetched { commit: commit.to_owned(), reached: Reached::Hash, relation: None, tag: None };
        if policy.signed == Signed::Commit {
            return self.verify(&plain, policy);
        }
        let mut refused = None;
        for tag in self.tags_of(commit)? {
            match self.verify(&Fetched { tag: Some(tag), ..plain.clone() }, policy) {
                Ok(who) => return Ok(who),
                Err(error) => refused = Some(error),
            }
        }
        refused.map_or_else(|| self.verify(&plain, policy), Err)
    }

    /// The tag objects here that lead to a commit, each under the name that it has in itself.
    fn tags_of(&self, commit: &str) -> Result<Vec<Tag>, Error> {
        let repository = self.repository();
        let references = repository.references().map_err(|error| self.failed(&error))?;
        let tags = references.flatten().filter_map(|reference| reference.target()).filter_map(|id| {
            let tag = repository.find_tag(id).ok()?;
            let leads = tag.as_object().peel_to_commit().ok()?.id().to_string() == commit;
            leads.then_some(())?;
            Some(Tag { name: tag.name().ok()?.to_owned(), object: Some(id.to_string()) })
        });
        Ok(tags.collect())
    }

    fn verify_commit(&self, commit: &str, policy: &Policy) -> Result<String, Error> {
        let refused = |reason: String| Error::Unsigned { what: format!("commit {commit}"), reason };
        let raw = self.raw(commit, ObjectType::Commit).map_err(refused)?;
        let (signature, content) = commit_signature(&raw).map_err(refused)?;
        let time = self.about(commit)?.time;
        policy.judge(&signature, &content, time).map_err(refused)
    }

    fn verify_tag(&self, fetched: &Fetched, policy: &Policy) -> Result<String, Error> {
        let Some(tag) = &fetched.tag else {
            let what = format!("commit {}", fetched.commit);
            return Err(Error::Unsigned { what, reason: "no tag led to it, and tags must be signed".to_owned() });
        };
        let refused = |reason: String| Error::Unsigned { what: format!("tag {}", tag.name), reason };
        let Some(object) = &tag.object else {
            return Err(refused("it is only a name; make it with `git tag -s`".to_owned()));
        };
        let raw = self.raw(object, ObjectType::Tag).map_err(refused)?;
        let (signature, content) = tag_signature(&raw).map_err(refused)?;
        let named = format!("tag {}", tag.name);
        let leads = format!("object {}", fetched.commit);
        let head = String::from_utf8_lossy(&content);
        let head = head.split("\n\n").next().unwrap_or_default();
        // A signed tag put under another name says what was signed.
        if !head.lines().any(|line| line == named) || !head.lines().any(|line| line == leads) {
            return Err(refused("what is signed is another tag, or leads to another commit".to_owned()));
        }
        let time = head.lines().find_map(|line| line.strip_prefix("tagger ")).and_then(tagged_at);
        let time = time.ok_or_else(|| refused("it does not say when it was made".to_owned()))?;
        policy.judge(&signature, &content, time).map_err(refused)
    }

    fn raw(&self, id: &str, kind: ObjectType) -> Result<Vec<u8>, String> {
        let id = Oid::from_str(id).map_err(|_| "it is no object".to_owned())?;
        let repository = self.repository();
        let odb = repository.odb().map_err(|error| error.message().to_owned())?;
        let object = odb.read(id).map_err(|error| error.message().to_owned())?;
        if object.kind() == kind { Ok(object.data().to_vec()) } else { Err("it is another kind of object".to_owned()) }
    }
}

/// The seconds in `Name <mail> SECONDS ZONE`.
fn tagged_at(tagger: &str) -> Option<Timestamp> {
    let seconds = tagger.rsplit(' ').nth(1)?;
    Timestamp::from_second(seconds.parse().ok()?).ok()
}

/// A commit's signature and what was signed: all but the signature.
fn commit_signature(raw: &[u8]) -> Result<(String, Vec<u8>), String> {
    let end = raw.windows(2).position(|two| two == b"\n\n").ok_or("it has no message")?;
    let (head, body) = raw.split_at(end + 1);
    let (mut signature, mut content) = (Vec::new(), Vec::new());
    let (mut inside, mut signatures) = (false, 0);
    for line in head.split_inclusive(|byte| *byte == b'\n') {
        if let Some(first) = line.strip_prefix(b"gpgsig ") {
            signatures += 1;
            inside = true;
            signature.extend_from_slice(first);
        } else if line.starts_with(b"gpgsig") {
            return Err("it has a signature for other hashes".to_owned());
        } else if let (true, Some(more)) = (inside, line.strip_prefix(b" ")) {
            signature.extend_from_slice(more);
        } else {
            inside = false;
            content.extend_from_slice(line);
        }
    }
    content.extend_from_slice(body);
    match signatures {
        0 => Err("it is not signed".to_owned()),
        1 => Ok((String::from_utf8(signature).map_err(|_| "its signature is no text")?, content)),
        _ => Err("it has several signatures".to_owned()),
    }
}

const BEGIN: &[u8] = b"\n-----BEGIN ";

/// A tag's signature and what was signed: all before it.
fn tag_signature(raw: &[u8]) -> Result<(String, Vec<u8>), String> {
    let begin = raw.windows(BEGIN.len()).rposition(|window| window == BEGIN).ok_or("it is not signed")? + 1;
    let signature = String::from_utf8(raw[begin..].to_vec()).map_err(|_| "its signature is no text")?;
    Ok((signature, raw[..begin].to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";

    #[test]
    fn a_list_of_signers_is_read() {
        let signers = |list: &str| {
            let policy = Policy::new(Signed::Commit, list)?;
            Ok::<_, String>(policy.signers.into_iter().map(|signer| signer.principal).collect::<Vec<_>>())
        };
        assert_eq!(signers(&format!("# us\nada {KEY} comment\n\nbob {KEY}\n")).unwrap(), ["ada", "bob"]);
        let times = "valid-after=\"20260101\",valid-before=\"20270101000000Z\"";
        let options = format!("ada namespaces=\"file,git\",{times} {KEY}\nbob namespaces=\"file\" {KEY}");
        assert_eq!(signers(&options).unwrap(), ["ada"]);
        let blank = format!("ada namespaces=\"file, git\" {KEY}");
        assert!(signers(&blank).is_err(), "`git` with a blank before it is another namespace");
        assert!(signers(&format!("ada namespaces=\"git\" {times} {KEY}")).is_err(), "options are one word");
        let error = |list: &str| signers(list).unwrap_err();
        assert_eq!(error("# nobody\n"), "allowed_signers names nobody who may sign");
        assert_eq!(error("ada nothing"), "line 1 of allowed_signers: there is no key, or an option that is not known");
        assert_eq!(
            error(&format!("ada cert-authority {KEY}")),
            "line 1 of allowed_signers: authorities are not supported; list the keys themselves"
        );
        assert!(error(&format!("ada valid-after=soon {KEY}")).contains("is no time"));
        assert!(error(&format!("ada valid-after=20261301 {KEY}")).contains("is no time"));
    }

    #[test]
    fn the_signature_is_cut_out() {
        let raw = b"tree x\ngpgsig A\n B\n C\nencoding y\n\nmessage\n gpgsig no\n";
        let (signature, content) = commit_signature(raw).unwrap();
        assert_eq!(signature, "A\nB\nC\n");
        assert_eq!(content, b"tree x\nencoding y\n\nmessage\n gpgsig no\n");
        let refused = |raw: &[u8]| commit_signature(raw).unwrap_err();
        assert_eq!(refused(b"tree x\n\ngpgsig A\n"), "it is not signed");
        assert_eq!(refused(b"tree x\ngpgsig A\ngpgsig B\n\nm"), "it has several signatures");
        assert_eq!(refused(b"tree x\ngpgsig-sha256 A\n\nm"), "it has a signature for other hashes");
        assert_eq!(refused(b"tree x"), "it has no message");
        let tag = b"object x\ntag v1\n\nm\n-----BEGIN SSH SIGNATURE-----\nA\n";
        let (signature, content) = tag_signature(tag).unwrap();
        assert_eq!(signature, "-----BEGIN SSH SIGNATURE-----\nA\n");
        assert_eq!(content, b"object x\ntag v1\n\nm\n");
        assert_eq!(tag_signature(b"object x\n\nm").unwrap_err(), "it is not signed");
    }

    #[test]
    fn other_kinds_of_signatures_are_refused() {
        let policy = Policy::new(Signed::Commit, &format!("ada {KEY}")).unwrap();
        let judge = |signature: &str| policy.judge(signature, b"", Timestamp::UNIX_EPOCH).unwrap_err();
        assert!(judge("-----BEGIN PGP SIGNATURE-----\n").starts_with("it is signed with OpenPGP"));
        assert!(judge("-----BEGIN SIGNED MESSAGE-----\n").starts_with("its signature is of a kind"));
        assert_eq!(
            judge("-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n"),
            "its signature cannot be read"
        );
        let missing = Policy::from_secret(Signed::Commit, &BTreeMap::from([("ada.asc".to_owned(), Vec::new())]));
        assert!(missing.unwrap_err().to_string().contains("OpenPGP keys are not supported"));
    }
}
