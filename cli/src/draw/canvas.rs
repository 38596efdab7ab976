//! What the layout draws on: an SVG whose looks are classes, cut to what was drawn.

use std::fmt::Write as _;

use layout::core::format::{ClipHandle, RenderBackend};
use layout::core::geometry::Point;
use layout::core::style::StyleAttr;

/// Room around the drawing.
const MARGIN: f64 = 16.0;

/// How far below its middle the baseline of a text is, in its own size: understood by every program, unlike
/// `dominant-baseline`.
const BASELINE: &str = "0.35em";

/// Colours of a light page, and of a dark one where the reader prefers it. The page's own colour is drawn, so that the
/// lines are seen wherever the drawing is put.
const STYLE: &str = "\
svg { --page: #ffffff; --ink: #1c1c1c; --plain: #ffffff; --end: #e6e6e6; --success: #cdeccd; --present: #ffe08a; }
@media (prefers-color-scheme: dark) {
svg { --page: #16181c; --ink: #e4e4e4; --plain: #24272d; --end: #3a3d44; --success: #1f4d2b; --present: #6b5200; }
}
text { font-family: sans-serif; font-size: 14px; text-anchor: middle; fill: #1c1c1c; fill: var(--ink); }
text.label { font-size: 11px; stroke: #ffffff; stroke: var(--page); stroke-width: 4px; paint-order: stroke; }
rect { stroke: #1c1c1c; stroke: var(--ink); fill: #ffffff; fill: var(--plain); }
rect.page { stroke: none; fill: #ffffff; fill: var(--page); }
rect.initial { stroke-width: 3px; }
rect.terminal { fill: #e6e6e6; fill: var(--end); }
rect.success { fill: #cdeccd; fill: var(--success); }
rect.present { fill: #ffe08a; fill: var(--present); }
path { fill: none; stroke: #1c1c1c; stroke: var(--ink); }
polygon { fill: #1c1c1c; fill: var(--ink); }
";

const MARKER: &str = "<marker id=\"head\" markerWidth=\"10\" markerHeight=\"7\" refX=\"10\" refY=\"3.5\" \
                      orient=\"auto\"><polygon points=\"0 0, 10 3.5, 0 7\"/></marker>";

const WRITES: &str = "writing to a string cannot fail";

/// A drawing as it grows: lines lie under nodes, and labels over both.
#[derive(Debug)]
pub(super) struct Canvas {
    label_font_size: usize,
    lines: String,
    nodes: String,
    labels: String,
    corners: Option<(Point, Point)>,
}

impl Canvas {
    /// An empty one; text of this size or smaller is a label.
    pub(super) const fn new(label_font_size: usize) -> Self {
        Self {
            label_font_size,
            lines: String::new(),
            nodes: String::new(),
            labels: String::new(),
            corners: None,
        }
    }

    /// The document.
    pub(super) fn finished(self, title: &str) -> String {
        let (least, most) = self.corners.unwrap_or((Point::zero(), Point::zero()));
        let (x, y) = ((least.x - MARGIN).floor(), (least.y - MARGIN).floor());
        let (width, height) = ((most.x + MARGIN - x).ceil(), (most.y + MARGIN - y).ceil());
        let page = format!("<rect class=\"page\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>\n");
        let title = escaped(title);
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" \
             height=\"{height}\" viewBox=\"{x} {y} {width} {height}\">\n<title>{title}</title>\n<desc>Thick border: \
             initial. Grey: terminal. Green: success. Yellow: present. Dashed: guarded or for some actors only.</desc>\n\
             <defs><style>\n{STYLE}</style>{MARKER}</defs>\n{page}{}{}{}</svg>\n",
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

impl RenderBackend for Canvas {
    fn draw_rect(
        &mut self,
        xy: Point,
        size: Point,
        look: &StyleAttr,
        properties: Option<String>,
        _: Option<ClipHandle>,
    ) {
        self.reach(xy);
        self.reach(xy.add(size));
        let (class, rounded) = (properties.unwrap_or_default(), look.rounded);
        writeln!(
            self.nodes,
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{rounded}\"/>",
            xy.x, xy.y, size.x, size.y
        )
        .expect(WRITES);
    }

    fn draw_text(&mut self, xy: Point, text: &str, look: &StyleAttr) {
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
        dashed: bool,
        (from_head, to_head): (bool, bool),
        _: &StyleAttr,
        properties: Option<String>,
        _: &str, // the layout makes a label a place of its own, and says it with `draw_text`
    ) {
        let mut curves = if path.len() == 2 {
            direct(path[0], path[1])
        } else {
            through(path)
        };
        if from_head && !to_head {
            // The layout draws an edge that leads upwards the other way round.
            curves.reverse();
            curves.iter_mut().for_each(|curve| *curve = curve.reversed());
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
            for step in 0..=STEPS {
                self.reach(curve.at(f64::from(step) / f64::from(STEPS)));
            }
        }
        let class = properties.unwrap_or_default();
        let dashes = if dashed { " stroke-dasharray=\"5,5\"" } else { "" };
        writeln!(
            self.lines,
            "<path class=\"{class}\"{dashes} d=\"{drawn}\" marker-end=\"url(#head)\"/>"
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

/// Points of a curve that are looked at, to find what it covers.
const STEPS: u32 = 16;

/// A cubic curve.
#[derive(Clone, Copy, Debug)]
struct Curve {
    start: Point,
    first: Point,
    second: Point,
    end: Point,
}

impl Curve {
    /// The same curve from its other end.
    const fn reversed(self) -> Self {
        Self {
            start: self.end,
            first: self.second,
            second: self.first,
            end: self.start,
        }
    }

    /// The point at a share of the way, 0 to 1.
    fn at(&self, share: f64) -> Point {
        let rest = 1.0 - share;
        let weighted = |point: Point, weight: f64| Point::new(point.x * weight, point.y * weight);
        weighted(self.start, rest.powi(3))
            .add(weighted(self.first, 3.0 * rest.powi(2) * share))
            .add(weighted(self.second, 3.0 * rest * share.powi(2)))
            .add(weighted(self.end, share.powi(3)))
    }
}

/// The curve between neighbours. The layout gives a point and the handle that leaves it, then the handle that enters a
/// point and the point.
fn direct((start, first): (Point, Point), (second, end): (Point, Point)) -> Vec<Curve> {
    vec![Curve {
        start,
        first,
        second,
        end,
    }]
}

/// A smooth line through every point of a long edge. The handles that the layout has for it make loops where it turns.
fn through(path: &[(Point, Point)]) -> Vec<Curve> {
    let points: Vec<Point> = path
        .iter()
        .enumerate()
        .map(|(place, (first, second))| if place == 0 { *first } else { *second })
        .collect();
    let at = |place: usize| points[place.min(points.len() - 1)];
    let curve = |place: usize| {
        let (before, start, end, after) = (at(place.saturating_sub(1)), at(place), at(place + 1), at(place + 2));
        Curve {
            start,
            first: start.add(end.sub(before).scale(SMOOTHNESS)),
            second: end.sub(after.sub(start).scale(SMOOTHNESS)),
            end,
        }
    };
    (0..points.len().saturating_sub(1)).map(curve).collect()
}

/// How far a handle reaches, of the distance between the points beside its own (Catmull and Rom).
const SMOOTHNESS: f64 = 1.0 / 6.0;

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
