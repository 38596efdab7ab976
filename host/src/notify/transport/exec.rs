//! A program, started without a shell.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use crate::model::Sent;
use crate::process::{Attended, AttendedEnd, Program, attend};

use super::tell::{Hidden, chain, with_end};
use super::{Attempt, Deadline, Outcome, failed};

/// The argument that is replaced by the body.
const PAYLOAD: &str = "{payload}";
/// What every program finds in its environment, if we have it.
const INHERITED: [&str; 4] = ["PATH", "HOME", "LANG", "TZ"];
/// The longest single argument Linux takes (`MAX_ARG_STRLEN`), its NUL included.
const ARGUMENT_BYTES_MAX: usize = 131_072;

/// Starts the program, gives it the body, and waits for its end.
pub(super) async fn send(attempt: &Attempt<'_>, argv: &[String], names: &[String]) -> Outcome {
    let (program, hidden) = program(attempt, argv, names).map_err(Sent::Refused)?;
    let deadline = Deadline::of(attempt);
    let attended = attend(&program, deadline.limit).await;
    let Attended { end, output } = attended.map_err(|error| failed(with_end(&chain(&error), &[], &hidden)))?;
    let what = match end {
        AttendedEnd::Exited(0) => return Ok(Sent::Delivered("exit 0".to_owned())),
        AttendedEnd::Exited(code) => format!("exit {code}"),
        AttendedEnd::Died(signal) => format!("ended by signal {signal}"),
        AttendedEnd::OutOfTime(survivors) => {
            let limit = crate::model::DurationMs::from(deadline.limit);
            let left: Vec<String> = survivors
                .iter()
                .map(|process| format!("{} ({})", process.pid, process.comm))
                .collect();
            match left.is_empty() {
                true => format!("had not ended after {limit} and was killed"),
                false => format!("had not ended after {limit}; could not be killed: {}", left.join(", ")),
            }
        }
    };
    Err(failed(with_end(&what, &output, &hidden)))
}

/// What is started, and what of its environment is not told; what is wrong with the destination otherwise.
fn program(attempt: &Attempt<'_>, argv: &[String], names: &[String]) -> Result<(Program, Hidden), String> {
    let body = &attempt.dispatch.body;
    let takes_it = argv.iter().skip(1).any(|argument| argument == PAYLOAD);
    if takes_it && (body.contains(&0) || body.len() >= ARGUMENT_BYTES_MAX) {
        return Err(format!("the body is no argument: {} bytes", body.len()));
    }
    if argv.first().is_none_or(String::is_empty) || argv.iter().any(|argument| argument.contains('\0')) {
        return Err("the program is empty, or an argument has a NUL byte".to_owned());
    }
    let is_name = |name: &&String| !name.is_empty() && !name.contains(['=', '\0']);
    if let Some(name) = names.iter().find(|name| !is_name(name)) {
        return Err(format!("{name:?} is no name of a variable"));
    }
    let arguments = argv
        .iter()
        .enumerate()
        .map(|(index, argument)| match argument.as_str() {
            PAYLOAD if index > 0 => OsString::from_vec(body.clone()),
            other => OsString::from(other),
        });
    let (environment, hidden) = environment(attempt, names);
    let program = Program {
        argv: arguments.collect(),
        environment,
        input: (!takes_it).then(|| body.clone()),
    };
    Ok((program, hidden))
}

/// The whole environment, ours last. Values of variables that the operator named are not told, nor is the token.
fn environment(attempt: &Attempt<'_>, names: &[String]) -> (Vec<(OsString, OsString)>, Hidden) {
    let surroundings = attempt.surroundings;
    let mut hidden = Hidden::default();
    let mut variables: Vec<(OsString, OsString)> = Vec::new();
    let inherited = INHERITED.into_iter().chain(names.iter().map(String::as_str));
    for name in inherited {
        if let Some(value) = (surroundings.variable)(name) {
            if !INHERITED.contains(&name) {
                hidden.add(value.to_string_lossy());
            }
            variables.push((name.into(), value));
        }
    }
    variables.push(("RUNWARDEN_HOME".into(), surroundings.home.into()));
    variables.push(("RUNWARDEN_DISPATCH_ID".into(), attempt.id.into()));
    variables.push(("RUNWARDEN_ATTEMPT_NUMBER".into(), attempt.number.to_string().into()));
    if let Some(event) = &attempt.dispatch.event_id {
        variables.push(("RUNWARDEN_EVENT_ID".into(), event.to_string().into()));
    }
    if let Some(token) = attempt.token {
        hidden.add(token);
        variables.push(("RUNWARDEN_ACK_TOKEN".into(), token.into()));
    }
    (variables, hidden)
}

#[cfg(test)]
mod tests;
