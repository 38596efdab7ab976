//! What the marks of a drawing mean: those that are in it, and no others.

use std::fmt::Write as _;

use layout::core::geometry::Point;

use super::canvas::{Box, Pen, WRITES, rect};

/// Room that one line of the legend takes, and the sample at the beginning of an entry.
const LINE_HEIGHT: f64 = 26.0;
const SAMPLE_WIDTH: f64 = 34.0;
const GAP: f64 = 8.0;

/// Room for a character of a legend's words, and between two entries.
const CHARACTER_WIDTH: f64 = 6.4;
const BETWEEN: f64 = 22.0;

/// How wide a legend is at least, if it needs it.
const WIDTH_MIN: f64 = 440.0;

/// One entry.
enum Sample {
    Box(Box),
    Line(Pen),
}

/// Draws the legend below `corner`, as wide as the drawing; gives the point that it reaches.
pub(super) fn legend(boxes: &[Box], pens: &[Pen], corner: Point, width: f64, into: &mut String) -> Point {
    let width = width.max(WIDTH_MIN);
    let (mut at, mut reached) = (corner, corner);
    for (sample, words) in entries(boxes, pens) {
        let characters = u32::try_from(words.chars().count()).unwrap_or(u32::MAX);
        let taken = SAMPLE_WIDTH + GAP + f64::from(characters) * CHARACTER_WIDTH;
        if at.x > corner.x && at.x + taken > corner.x + width {
            at = Point::new(corner.x, at.y + LINE_HEIGHT);
        }
        draw(&sample, at, into);
        let (x, y) = (at.x + SAMPLE_WIDTH + GAP, at.y + 9.0);
        writeln!(
            into,
            "<text class=\"legend\" x=\"{x}\" y=\"{y}\" dy=\"0.35em\">{words}</text>"
        )
        .expect(WRITES);
        reached = Point::new(reached.x.max(at.x + taken), at.y + 18.0);
        at.x += taken + BETWEEN;
    }
    reached
}

fn entries(boxes: &[Box], pens: &[Pen]) -> Vec<(Sample, &'static str)> {
    let status = |class: &str| Box {
        class: format!("status {class}"),
        ..Box::default()
    };
    let line = |class: &str| Pen {
        class: format!("sample {class}"),
        ..Pen::default()
    };
    let has = |class: &str| {
        boxes
            .iter()
            .any(|shown| shown.class.split(' ').any(|word| word == class))
    };
    let drawn = |class: &str| pens.iter().any(|pen| pen.class.split(' ').any(|word| word == class));
    let initial = Box {
        initial: true,
        ..status("initial")
    };
    let terminal = Box {
        terminal: true,
        ..status("terminal")
    };
    let success = Box {
        success: true,
        terminal: true,
        ..status("terminal success")
    };
    let both = Pen {
        both_ways: true,
        ..line("")
    };
    let entries = [
        (has("initial"), Sample::Box(initial), "begins here"),
        (has("terminal"), Sample::Box(terminal), "an end"),
        (has("success"), Sample::Box(success), "an end, a success"),
        (has("any"), Sample::Box(status("any")), "each status that is no end"),
        (has("present"), Sample::Box(status("present")), "where it is now"),
        (pens.iter().any(|pen| pen.both_ways), Sample::Line(both), "both ways"),
        (drawn("guarded"), Sample::Line(line("guarded")), "a guard is asked"),
        (
            drawn("restricted"),
            Sample::Line(line("restricted")),
            "for some actors only",
        ),
        (drawn("taken"), Sample::Line(line("taken")), "taken, at that step"),
        (drawn("jump"), Sample::Line(line("jump taken")), "no edge: a jump"),
    ];
    entries
        .into_iter()
        .filter(|(is, ..)| *is)
        .map(|(_, sample, words)| (sample, words))
        .collect()
}

fn draw(sample: &Sample, at: Point, into: &mut String) {
    match sample {
        Sample::Box(shown) => rect(shown, at, Point::new(SAMPLE_WIDTH, 18.0), into),
        Sample::Line(pen) => {
            let (from, to, y) = (at.x, at.x + SAMPLE_WIDTH, at.y + 9.0);
            let tail = if pen.both_ways {
                " marker-start=\"url(#tail)\""
            } else {
                ""
            };
            writeln!(
                into,
                "<line class=\"{}\" x1=\"{from}\" y1=\"{y}\" x2=\"{to}\" y2=\"{y}\"{tail} marker-end=\"url(#head)\"/>",
                pen.class
            )
            .expect(WRITES);
        }
    }
}
