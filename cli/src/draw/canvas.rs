//! What the layout draws on: an SVG whose looks are classes, cut to what was drawn.

use std::fmt::Write as _;

use layout::core::format::{ClipHandle, RenderBackend};
use layout::core::geometry::Point;
use layout::core::style::StyleAttr;

use super::curve::{Curve, aside, curves};

/// Room around the drawing.
const MARGIN: f64 = 16.0;

/// How far below its middle the baseline of a text is, in its own size: understood by every program, unlike
/// `dominant-baseline`.
const BASELINE: &str = "0.35em";

/// Room above the drawing for its title.
const TITLE_HEIGHT: f64 = 34.0;

/// Room between the drawing and its legend.
const LEGEND_GAP: f64 = 30.0;

/// How far a line is from the one that leads back.
const ASIDE: f64 = 4.0;

/// How far such a line begins below its box, of its first handle.
const OVERLAP: f64 = 0.15;

/// Colours of a light page, and of a dark one where the reader prefers it. The page's own colour is drawn, so that the
/// lines are seen wherever the drawing is put. Every mark is a form too: colours say nothing alone.
const STYLE: &str = "\
svg { --page: #ffffff; --ink: #1c1c1c; --plain: #ffffff; --end: #e6e6e6; --success: #cdeccd; --present: #ffe08a; }
@media (prefers-color-scheme: dark) {
svg { --page: #16181c; --ink: #e4e4e4; --plain: #24272d; --end: #3a3d44; --success: #1f4d2b; --present: #6b5200; }
}
text { font-family: sans-serif; font-size: 14px; text-anchor: middle; fill: #1c1c1c; fill: var(--ink); }
text.title { font-size: 18px; font-weight: bold; text-anchor: start; }
text.legend { font-size: 11px; text-anchor: start; }
text.label { font-size: 11px; stroke: #ffffff; stroke: var(--page); stroke-width: 4px; paint-order: stroke; }
text.badge { font-size: 11px; font-weight: bold; fill: #ffffff; fill: var(--page); }
rect { stroke: #1c1c1c; stroke: var(--ink); fill: #ffffff; fill: var(--plain); }
rect.page { stroke: none; fill: #ffffff; fill: var(--page); }
rect.any { stroke-dasharray: 1 3; stroke-linecap: round; stroke-width: 2px; }
rect.initial { stroke-width: 3px; }
rect.terminal { fill: #e6e6e6; fill: var(--end); }
rect.success { fill: #cdeccd; fill: var(--success); }
rect.present { fill: #ffe08a; fill: var(--present); stroke-width: 4px; }
rect.inner { fill: none; }
rect.badge { fill: #1c1c1c; fill: var(--ink); }
circle { fill: #1c1c1c; fill: var(--ink); }
path, line, polyline { fill: none; stroke: #1c1c1c; stroke: var(--ink); }
polyline { stroke-width: 2px; }
.guarded { stroke-dasharray: 8 4; }
.restricted { stroke-dasharray: 2 4; }
.jump { stroke-dasharray: 10 3 2 3; }
.taken { stroke-width: 3.5px; }
polygon { fill: #1c1c1c; fill: var(--ink); }
";

const MARKERS: &str = "<marker id=\"head\" markerWidth=\"10\" markerHeight=\"8\" refX=\"10\" refY=\"4\" orient=\"auto\" \
                       markerUnits=\"userSpaceOnUse\"><polygon points=\"0 0, 10 4, 0 8\"/></marker><marker id=\"tail\" \
                       markerWidth=\"10\" markerHeight=\"8\" refX=\"0\" refY=\"4\" orient=\"auto\" \
                       markerUnits=\"userSpaceOnUse\"><polygon points=\"10 0, 0 4, 10 8\"/></marker>";

pub(super) const WRITES: &str = "writing to a string cannot fail";

/// How a status is shown.
#[derive(Clone, Debug, Default)]
pub(super) struct Box {
    /// What it is, for the style sheet.
    pub(super) class: String,
    /// It has a point at its side.
    pub(super) initial: bool,
    /// It has a second border.
    pub(super) terminal: bool,
    /// It is ticked.
    pub(super) success: bool,
    /// Words on its corner.
    pub(super) badge: Option<String>,
}

/// How a line is drawn.
#[derive(Clone, Debug, Default)]
pub(super) struct Pen {
    /// What it is, for the style sheet.
    pub(super) class: String,
    /// It has a head at either end.
    pub(super) both_ways: bool,
    /// Another one leads back.
    pub(super) aside: bool,
}

/// A drawing as it grows: lines lie under nodes, and labels over both.
#[derive(Debug)]
pub(super) struct Canvas {
    label_font_size: usize,
    boxes: Vec<Box>,
    pens: Vec<Pen>,
    lines: String,
    nodes: String,
    labels: String,
    corners: Option<(Point, Point)>,
}

impl Canvas {
    /// An empty one, which draws these boxes and lines by their numbers; text of this size or smaller is a label.
    pub(super) const fn new(label_font_size: usize, boxes: Vec<Box>, pens: Vec<Pen>) -> Self {
        Self {
            label_font_size,
            boxes,
            pens,
            lines: String::new(),
            nodes: String::new(),
            labels: String::new(),
            corners: None,
        }
    }

    /// The document.
    pub(super) fn finished(mut self, label: &str, kind: &str) -> String {
        let (least, most) = self.corners.unwrap_or((Point::zero(), Point::zero()));
        let title = format!("{label}  for {kind}");
        let baseline = least.y - TITLE_HEIGHT + 12.0;
        let characters = u32::try_from(title.chars().count()).unwrap_or(u32::MAX);
        self.reach(Point::new(least.x, least.y - TITLE_HEIGHT));
        self.reach(Point::new(least.x + f64::from(characters) * 11.0, baseline));
        let mut legend = String::new();
        let below = Point::new(least.x, most.y + LEGEND_GAP);
        let reached = super::legend::legend(&self.boxes, &self.pens, below, most.x - least.x, &mut legend);
        self.reach(reached);
        let (left, (least, most)) = (least.x, self.corners.unwrap_or((least, most)));
        let (x, y) = ((least.x - MARGIN).floor(), (least.y - MARGIN).floor());
        let (width, height) = ((most.x + MARGIN - x).ceil(), (most.y + MARGIN - y).ceil());
        let page = format!("<rect class=\"page\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>\n");
        let title = escaped(&title);
        let heading = format!("<text class=\"title\" x=\"{left}\" y=\"{baseline}\">{title}</text>\n");
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" \
             height=\"{height}\" viewBox=\"{x} {y} {width} {height}\">\n<title>{title}</title>\n\
             <defs><style>\n{STYLE}</style>{MARKERS}</defs>\n{page}{heading}{}{}{}{legend}</svg>\n",
            self.lines, self.nodes, self.labels
        )
    }

    fn reach(&mut self, point: Point) {
        let (least, most) = self.corners.unwrap_or((point, point));
        self.corners = Some((
            Point::new(least.x.min(point.x), least.y.min(point.y)),
            Point::new(most.x.max(point.x), most.y.max(point.y)),
        ));
    }
}

/// The thing that the layout calls by this number.
fn numbered<T: Clone + Default>(all: &[T], number: Option<String>) -> T {
    let place: Option<usize> = number.and_then(|number| number.parse().ok());
    place.and_then(|place| all.get(place)).cloned().unwrap_or_default()
}

impl RenderBackend for Canvas {
    fn draw_rect(&mut self, xy: Point, size: Point, _: &StyleAttr, number: Option<String>, _: Option<ClipHandle>) {
        let shown = numbered(&self.boxes, number);
        self.reach(xy.sub(Point::new(8.0, 14.0)));
        self.reach(xy.add(size).add(Point::new(14.0, 0.0)));
        rect(&shown, xy, size, &mut self.nodes);
    }

    fn draw_text(&mut self, xy: Point, text: &str, look: &StyleAttr) {
        if text.is_empty() {
            return;
        }
        let (x, y, words) = (xy.x, xy.y, escaped(text));
        let (into, class) = if look.font_size <= self.label_font_size {
            (&mut self.labels, " class=\"label\"")
        } else {
            (&mut self.nodes, "")
        };
        writeln!(
            into,
            "<text{class} x=\"{x}\" y=\"{y}\" dy=\"{BASELINE}\">{words}</text>"
        )
        .expect(WRITES);
        // A character takes a little more than half of its size.
        let characters = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
        let size = f64::from(u32::try_from(look.font_size).unwrap_or(u32::MAX));
        let half = Point::new(f64::from(characters) * size * 0.3, size / 2.0);
        self.reach(xy.sub(half));
        self.reach(xy.add(half));
    }

    fn draw_arrow(
        &mut self,
        path: &[(Point, Point)],
        _: bool, // how a line is dashed is said by its class
        (from_head, to_head): (bool, bool),
        _: &StyleAttr,
        number: Option<String>,
        _: &str, // the layout makes a label a place of its own, and says it with `draw_text`
    ) {
        let pen = numbered(&self.pens, number);
        let mut curves = curves(path);
        if from_head && !to_head {
            // The layout draws an edge that leads upwards the other way round.
            curves.reverse();
            curves.iter_mut().for_each(|curve| *curve = curve.reversed());
        }
        if pen.aside {
            let step = aside(&curves, ASIDE);
            curves.iter_mut().for_each(|curve| *curve = curve.moved(step));
            // Beside its place on the border it may begin a little before it: below the box nobody sees that.
            if let Some(first) = curves.first_mut() {
                first.start = first.start.sub(first.first.sub(first.start).scale(OVERLAP));
            }
        }
        let Some(begin) = curves.first().map(|curve| curve.start) else {
            return;
        };
        let mut drawn = format!("M {} {}", begin.x, begin.y);
        for curve in &curves {
            let Curve { first, second, end, .. } = curve;
            write!(
                drawn,
                " C {} {}, {} {}, {} {}",
                first.x, first.y, second.x, second.y, end.x, end.y
            )
            .expect(WRITES);
            curve.points().for_each(|point| self.reach(point));
        }
        let tail = if pen.both_ways {
            " marker-start=\"url(#tail)\""
        } else {
            ""
        };
        let class = pen.class;
        writeln!(
            self.lines,
            "<path class=\"{class}\" d=\"{drawn}\"{tail} marker-end=\"url(#head)\"/>"
        )
        .expect(WRITES);
    }

    // The layout draws these for shapes and for debugging that no graph of ours asks for.
    fn draw_line(&mut self, _: Point, _: Point, _: &StyleAttr, _: Option<String>) {}

    fn draw_circle(&mut self, _: Point, _: Point, _: &StyleAttr, _: Option<String>) {}

    fn create_clip(&mut self, _: Point, _: Point, _: usize) -> ClipHandle {
        0
    }
}

/// Draws a box with its marks.
pub(super) fn rect(shown: &Box, xy: Point, size: Point, into: &mut String) {
    let (class, middle, right) = (&shown.class, xy.y + size.y / 2.0, xy.x + size.x);
    let mut put = |text: String| writeln!(into, "{text}").expect(WRITES);
    let plain = |class: &str, xy: Point, size: Point, rounded: f64| {
        let (x, y, width, height) = (xy.x, xy.y, size.x, size.y);
        format!("<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"{rounded}\"/>")
    };
    put(plain(class, xy, size, 8.0));
    if shown.terminal {
        let inset = Point::new(3.5, 3.5);
        put(plain("inner", xy.add(inset), size.sub(inset.scale(2.0)), 5.0));
    }
    if shown.success {
        let x = xy.x + 9.0;
        put(format!(
            "<polyline points=\"{x},{middle} {},{} {},{}\"/>",
            x + 3.0,
            middle + 4.0,
            x + 9.0,
            middle - 5.0
        ));
    }
    if shown.initial {
        put(format!("<circle cx=\"{}\" cy=\"{middle}\" r=\"5\"/>", xy.x));
    }
    if let Some(badge) = &shown.badge {
        let characters = u32::try_from(badge.chars().count()).unwrap_or(u32::MAX);
        let width = f64::from(characters) * 6.6 + 10.0;
        let corner = Point::new(right - width + 12.0, xy.y - 12.0);
        put(plain("badge", corner, Point::new(width, 16.0), 8.0));
        let (x, y) = (corner.x + width / 2.0, corner.y + 8.0);
        put(format!(
            "<text class=\"badge\" x=\"{x}\" y=\"{y}\" dy=\"{BASELINE}\">{}</text>",
            escaped(badge)
        ));
    }
}

/// Words as XML takes them.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            character => escaped.push(character),
        }
    }
    escaped
}
