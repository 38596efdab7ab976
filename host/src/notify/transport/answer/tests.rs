//! What answers mean.

use hyper::header::HeaderValue;

use super::*;

const NOW: Timestamp = Timestamp::from_ms(784_111_777_000); // Sun, 06 Nov 1994 08:49:37 GMT

fn outcome(status: u16, retry_after: Option<&str>) -> Sent {
    let mut headers = HeaderMap::new();
    if let Some(value) = retry_after {
        headers.insert(RETRY_AFTER, HeaderValue::from_str(value).expect("a header"));
    }
    let status = StatusCode::from_u16(status).expect("a status");
    Answer { status, headers }.outcome(b"\n  busy\x1b[2J \nmore", &Hidden::default(), NOW)
}

fn failed(error: &str, retry_after_ms: Option<i64>) -> Sent {
    Sent::Failed {
        error: error.to_owned(),
        retry_after: retry_after_ms.map(DurationMs::from_ms),
    }
}

#[test]
fn each_status_has_its_outcome() {
    for status in [200, 201, 202, 204, 299] {
        assert_eq!(outcome(status, None), Sent::Delivered(format!("HTTP {status}")));
    }
    for status in [400, 401, 403, 404, 418, 429, 500, 502, 503, 504, 599] {
        assert_eq!(
            outcome(status, None),
            failed(&format!("HTTP {status}: busy\\u{{1b}}[2J"), None)
        );
    }
    for status in [300, 301, 302, 303, 307, 308] {
        let told = format!("HTTP {status}: redirects are not followed, the URL has to be the receiver's own");
        assert_eq!(outcome(status, Some("5")), failed(&told, None));
    }
    assert_eq!(
        outcome(410, None),
        Sent::Refused("HTTP 410, gone for good: busy\\u{1b}[2J".to_owned())
    );
}

#[test]
fn a_receiver_says_when_to_come_back_in_seconds_or_by_a_date() {
    for (value, expected) in [
        ("0", Some(0)),
        ("120", Some(120_000)),
        ("Sun, 06 Nov 1994 08:49:47 GMT", Some(10_000)),
        ("Sun, 06 Nov 1994 08:49:27 GMT", Some(0)),
        ("99999999999999999999", Some(i64::MAX)),
        ("-1", None),
        ("soon", None),
        ("", None),
        ("1.5", None),
    ] {
        for status in [429, 503] {
            let told = format!("HTTP {status}: busy\\u{{1b}}[2J");
            assert_eq!(outcome(status, Some(value)), failed(&told, expected), "{value}");
        }
    }
    assert_eq!(outcome(500, Some("120")), failed("HTTP 500: busy\\u{1b}[2J", None));
}
