//! Drawings of a policy's graph. Names come from a stranger's component: each format escapes them in its own way.

mod canvas;
mod curve;
mod dot;
mod graph;
mod legend;
mod matrix;
mod mermaid;
mod route;
mod svg;
mod words;

pub(crate) use dot::dot;
pub(crate) use graph::Graph;
pub(crate) use matrix::{matrix_json, matrix_text};
pub(crate) use mermaid::mermaid;
pub(crate) use route::{Route, Step};
pub(crate) use svg::svg;
pub(crate) use words::{edge_lines, status_lines};
