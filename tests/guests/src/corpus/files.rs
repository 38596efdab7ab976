//! Files that are no component, and components whose bytes no toolchain writes.

use super::stub::{Stub, words};
use super::{Case, install};

/// Magic number and version of a component.
const COMPONENT: [u8; 8] = *b"\0asm\x0d\0\x01\0";

/// The section of a custom name, of a nested component, and of types.
const CUSTOM: u8 = 0;
const NESTED: u8 = 4;
const TYPES: u8 = 7;

pub(super) fn cases() -> Vec<Case> {
    let stub = Stub::policy().component();
    let half = stub[..stub.len() / 2].to_vec();
    let with_more = |more: &[u8]| [stub.as_slice(), more].concat();
    vec![
        install("nothing at all", Vec::new()),
        install("a shell script", b"#!/bin/sh\nexec rm -rf /\n".to_vec()),
        install("a native program", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec()),
        install("WebAssembly as text", b"(component)".to_vec()),
        install("four bytes of a header", b"\0asm".to_vec()),
        install("an unknown layer of WebAssembly", b"\0asm\x01\0\x02\0".to_vec()),
        install("a component of an unknown version", b"\0asm\xff\0\x01\0".to_vec()),
        install("a component without anything", COMPONENT.to_vec()),
        install("a core module", b"\0asm\x01\0\0\0".to_vec()),
        install("half a component", half),
        install("a component and something after it", with_more(b"more")),
        install("two components in one file", with_more(&stub)),
        install("a section that says it has 4 GiB", section(TYPES, &[], u32::MAX)),
        install(
            "a section that says it has 2^32 - 1 types",
            section(TYPES, &leb(u32::MAX), 5),
        ),
        install("a count that never ends", section(TYPES, &[0x80; 64], 64)),
        install("a section of a kind that is none", section(99, &[], 0)),
        install("a thousand components, one in another", nested(1_000)),
        install(
            "a thousand components, one beside another",
            [&COMPONENT[..], &beside(1_000)].concat(),
        ),
        install(
            "a hundred thousand sections",
            [stub.as_slice(), &custom().repeat(100_000)].concat(),
        ),
        install("more bytes than any component may have", vec![0; (8 << 20) + 1]),
        install(
            "text in the name of a section that is not UTF-8",
            with_more(&[CUSTOM, 3, 2, 0xff, 0xfe]),
        ),
        install("words without a meaning", words(&[0xdead_beef; 64])),
    ]
}

/// Where the outermost sections of a component begin, and where the last one ends.
///
/// # Panics
/// The bytes are no component.
pub fn sections(bytes: &[u8]) -> Vec<usize> {
    let mut borders = vec![COMPONENT.len()];
    let mut at = COMPONENT.len();
    while at < bytes.len() {
        let (size, size_bytes) = unleb(&bytes[at + 1..]);
        at += 1 + size_bytes + size;
        borders.push(at);
    }
    assert_eq!(at, bytes.len(), "the last section ends with the file");
    borders
}

/// A component of one section, whatever its header says of its size.
fn section(kind: u8, content: &[u8], size: u32) -> Vec<u8> {
    [&COMPONENT[..], &[kind], &leb(size), content].concat()
}

fn nested(depth: usize) -> Vec<u8> {
    (0..depth).fold(COMPONENT.to_vec(), |inner, _| {
        let size = u32::try_from(inner.len()).expect("a small component");
        section(NESTED, &inner, size)
    })
}

fn beside(count: usize) -> Vec<u8> {
    let one = [&[NESTED, 8][..], &COMPONENT].concat();
    one.repeat(count)
}

/// A custom section with a name of one byte.
fn custom() -> Vec<u8> {
    vec![CUSTOM, 2, 1, b'x']
}

fn leb(mut value: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (value & 0x7f).to_le_bytes()[0];
        value >>= 7;
        if value == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

fn unleb(bytes: &[u8]) -> (usize, usize) {
    let mut value = 0;
    for (place, byte) in bytes.iter().enumerate() {
        value |= usize::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return (value, place + 1);
        }
    }
    panic!("a size has an end");
}
