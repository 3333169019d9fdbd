//! Go's net/rpc on one stream: a header and a value each way, matched by number.
//!
//! Never waits and never retries: requests become bytes, bytes become answers.

use std::sync::Arc;

use crate::{
    gob::{DecodeError, Decoder, EncodeError, Encoder, Limits, Value, schema::Of},
    object::table,
};

/// What a method is called with.
#[derive(Debug, Clone, PartialEq)]
pub enum Argument {
    /// A nil interface.
    Nil,
    /// A struct in an interface, under the name that both sides registered it with.
    Struct(&'static str, Value),
    /// A text, of go-plugin's own services.
    Text(String),
    /// A truth value, of go-plugin's own services.
    Bool(bool),
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The number of the request.
    pub sequence: u64,
    /// The value, or the text of the error with which the server refused.
    pub outcome: Result<Value, String>,
}

/// Both directions of one stream.
#[derive(Debug)]
pub struct Channel {
    encoder: Encoder,
    decoder: Decoder,
    next: u64,
    /// The header whose value has not arrived yet.
    header: Option<Value>,
}

impl Channel {
    /// A channel on a new stream.
    pub fn new(limits: Limits) -> Self {
        Channel { encoder: Encoder::new(table().schema()), decoder: Decoder::new(limits), next: 0, header: None }
    }

    /// The bytes of a request and its number. A request that cannot be written leaves the stream as it was.
    pub fn request(&mut self, method: &str, argument: &Argument) -> Result<(u64, Vec<u8>), EncodeError> {
        let sequence = self.next;
        let header = Value::Struct(vec![
            (Arc::from("ServiceMethod"), Value::Text(method.to_owned())),
            (Arc::from("Seq"), Value::Uint(sequence)),
        ]);
        let mut encoder = self.encoder.clone();
        let mut bytes = encoder.put_struct(table().root("Request"), &header)?;
        bytes.extend(match argument {
            Argument::Nil => encoder.put_interface(None)?,
            Argument::Struct(name, value) => encoder.put_interface(Some((name, table().root(name), value)))?,
            Argument::Text(text) => encoder.put_single(Of::Text, &Value::Text(text.clone()))?,
            Argument::Bool(is) => encoder.put_single(Of::Bool, &Value::Bool(*is))?,
        });
        self.encoder = encoder;
        self.next += 1;
        Ok((sequence, bytes))
    }

    /// Adds what has arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.decoder.push(bytes);
    }

    /// The next answer, if all of it has arrived.
    pub fn next_answer(&mut self) -> Result<Option<Answer>, DecodeError> {
        while let Some(value) = self.decoder.next_value()? {
            let Some(header) = self.header.take() else {
                if !matches!(value, Value::Struct(_)) {
                    return Err(DecodeError::Malformed("no header before an answer"));
                }
                self.header = Some(value);
                continue;
            };
            let sequence = match header.field("Seq") {
                None => 0,
                Some(Value::Uint(number)) => *number,
                Some(_) => return Err(DecodeError::Malformed("an answer whose number is none")),
            };
            let error = header.text("Error");
            // Beside an error stands an empty struct in the place of the value.
            let outcome = if error.is_empty() { Ok(value) } else { Err(error.to_owned()) };
            return Ok(Some(Answer { sequence, outcome }));
        }
        Ok(None)
    }
}
