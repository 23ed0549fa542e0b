//! `certificatesigningrequests/approval`: an approver's verdict, apart from what the signer writes.

use crate::api::request::{Request, Response, Verb};
use crate::api::status::Status;
use crate::apiserver::strategies::certificate;
use crate::apiserver::{ApiServer, Moment, answer, decode, patch, read, write};

pub fn handle(server: &mut ApiServer, request: &Request, moment: &mut Moment<'_>) -> Result<Response, Status> {
    let old = read::existing(server, request)?;
    let (wanted, warnings) = match request.verb {
        Verb::Get => return Ok(answer(old)),
        Verb::Patch(_) => patch::apply_to(server, request, &old)?,
        _ => decode::body(request)?,
    };
    let mut new = certificate::approve(&old, &wanted, moment)?;
    new.revision = wanted.revision;
    write::replace(server, request, old, new, write::Managers::Writer, warnings, moment)
}
