//! Requests: what a message to the management node asks (router-protocol reference §10.2).

use ringmain_codec::{Properties, SectionKind, Sections, Value};

/// A request. What isn't given is `None`.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Request<'b> {
    /// The address that the reply goes to; never empty.
    pub(super) reply_to: &'b str,
    /// What the reply is told apart by: the correlation-id, or the message-id if there is none.
    pub(super) correlation_id: Option<Value<'b>>,
    pub(super) operation: Option<&'b str>,
    /// The type that QUERY and the GET operations are about.
    pub(super) entity_type: Option<&'b str>,
    /// The type of the entity that is created, read, updated or deleted.
    pub(super) of_type: Option<&'b str>,
    pub(super) name: Option<&'b str>,
    pub(super) identity: Option<&'b str>,
    /// How many results at the most; a negative number means all.
    pub(super) count: Option<i64>,
    /// How many results are left out before them.
    pub(super) offset: Option<i64>,
    /// How many lines of the log.
    pub(super) limit: Option<i64>,
    /// How much deeper each level of JSON is indented.
    pub(super) indent: Option<i64>,
    /// The application-properties as they came.
    pub(super) properties: Option<Value<'b>>,
    /// The body, if it is one value.
    pub(super) body: Option<Value<'b>>,
}

impl<'b> Request<'b> {
    /// Reads a message; `None` if nobody waits for a reply, or it isn't a message at all.
    pub(super) fn read(message: &'b [u8]) -> Option<Self> {
        let mut request = Self::default();
        let mut sections = Sections::new(message);
        while let Some(section) = sections.next().ok()? {
            match section.kind {
                SectionKind::Properties => {
                    let properties = Properties::from_section(&section).ok()?;
                    request.reply_to = properties.reply_to.unwrap_or("");
                    request.correlation_id = properties.correlation_id.or(properties.message_id);
                }
                SectionKind::ApplicationProperties => request.take_properties(section.value),
                SectionKind::AmqpValue => request.body = Some(section.value),
                SectionKind::Header
                | SectionKind::DeliveryAnnotations
                | SectionKind::MessageAnnotations
                | SectionKind::Data
                | SectionKind::AmqpSequence
                | SectionKind::Footer => {}
            }
        }
        Some(request).filter(|request| !request.reply_to.is_empty())
    }

    fn take_properties(&mut self, properties: Value<'b>) {
        self.properties = Some(properties);
        let text = |name| properties.get(name).and_then(|value| value.as_str());
        // Tools give numbers as texts when the user typed them.
        let number = |name| {
            let value = properties.get(name)?;
            value.as_i64().or_else(|| value.as_str()?.trim().parse().ok())
        };
        self.operation = text("operation");
        self.entity_type = text("entityType").filter(|text| !text.is_empty());
        self.of_type = text("type").filter(|text| !text.is_empty());
        self.name = text("name");
        self.identity = text("identity");
        self.count = number("count");
        self.offset = number("offset");
        self.limit = number("limit");
        self.indent = number("indent");
    }

    /// The attributes' names that a QUERY's body asks for; none means all.
    ///
    /// # Errors
    /// The body, or what it has there, is of another type: a sentence for whoever asked.
    pub(super) fn attribute_names(&self) -> Result<Vec<&'b str>, String> {
        let Some(body) = self.body.filter(|body| !body.is_null()) else { return Ok(Vec::new()) };
        if body.entries().is_none() {
            return Err("The body of a QUERY must be a map".to_owned());
        }
        let Some(names) = body.get("attributeNames").filter(|names| !names.is_null()) else {
            return Ok(Vec::new());
        };
        let wrong = || "'attributeNames' must be a list of strings".to_owned();
        names.items().ok_or_else(wrong)?.map(|name| name.as_str().ok_or_else(wrong)).collect()
    }

    /// The attributes that a CREATE's or UPDATE's body sets, nulls left out.
    ///
    /// # Errors
    /// The body is no map with strings as keys: a sentence for whoever asked.
    pub(super) fn attributes(&self) -> Result<Vec<(&'b str, Value<'b>)>, String> {
        let wrong = || "The body must be a map of attributes".to_owned();
        let Some(body) = self.body.filter(|body| !body.is_null()) else { return Ok(Vec::new()) };
        let entries = body.entries().ok_or_else(wrong)?;
        let named = entries.map(|(key, value)| Ok((key.as_str().ok_or_else(wrong)?, value)));
        named.filter(|entry| entry.as_ref().map_or(true, |(_, value)| !value.is_null())).collect()
    }
}
