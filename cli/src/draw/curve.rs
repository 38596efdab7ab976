//! Curves through the points that the layout gives.

use layout::core::geometry::Point;

/// Points of a curve that are looked at, to find what it covers.
const STEPS: u32 = 16;

/// How far a handle reaches, of the distance to the other end.
const STEADINESS: f64 = 0.4;

/// Half of the height of a row, in which a long edge does not turn.
const HALF_ROW: f64 = 17.0;

/// A cubic curve.
#[derive(Clone, Copy, Debug)]
pub(super) struct Curve {
    pub(super) start: Point,
    pub(super) first: Point,
    pub(super) second: Point,
    pub(super) end: Point,
}

impl Curve {
    /// The same curve from its other end.
    pub(super) const fn reversed(self) -> Self {
        Self {
            start: self.end,
            first: self.second,
            second: self.first,
            end: self.start,
        }
    }

    /// The same curve elsewhere.
    pub(super) fn moved(self, by: Point) -> Self {
        Self {
            start: self.start.add(by),
            first: self.first.add(by),
            second: self.second.add(by),
            end: self.end.add(by),
        }
    }

    /// Points on the whole of it.
    pub(super) fn points(self) -> impl Iterator<Item = Point> {
        (0..=STEPS).map(move |step| self.at(f64::from(step) / f64::from(STEPS)))
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

/// The way of an edge. Between neighbours the layout gives a point and the handle that leaves it, then the handle that
/// enters a point and the point.
pub(super) fn curves(path: &[(Point, Point)]) -> Vec<Curve> {
    match path {
        [(start, first), (second, end)] => vec![Curve {
            start: *start,
            first: *first,
            second: *second,
            end: *end,
        }],
        path => through(path),
    }
}

/// A smooth line through every row that a long edge crosses: straight up or down beside the boxes of the row, so that it
/// touches none of them. The handles that the layout has for it make loops where it turns.
fn through(path: &[(Point, Point)]) -> Vec<Curve> {
    let points = path.iter().enumerate();
    let points: Vec<Point> = points
        .map(|(place, (first, second))| if place == 0 { *first } else { *second })
        .collect();
    let [begin, rows @ .., end] = points.as_slice() else {
        return Vec::new();
    };
    let down = if end.y >= begin.y { 1.0 } else { -1.0 };
    let half_row = Point::new(0.0, HALF_ROW * down);
    let (mut at, mut first, mut curves) = (*begin, None, Vec::new());
    for row in rows {
        let (enter, leave) = (row.sub(half_row), row.add(half_row));
        let upright = Point::new(0.0, (enter.y - at.y) * STEADINESS);
        curves.push(Curve {
            start: at,
            first: first.unwrap_or_else(|| at.add(enter.sub(at).scale(STEADINESS))),
            second: enter.sub(upright),
            end: enter,
        });
        curves.push(straight(enter, leave));
        first = Some(leave.add(upright));
        at = leave;
    }
    curves.push(Curve {
        start: at,
        first: first.unwrap_or(at),
        second: end.sub(end.sub(at).scale(STEADINESS)),
        end: *end,
    });
    curves
}

fn straight(start: Point, end: Point) -> Curve {
    Curve {
        start,
        first: start,
        second: end,
        end,
    }
}

/// A step to the right of the way, so that a line and the one that leads back do not lie on each other.
pub(super) fn aside(curves: &[Curve], by: f64) -> Point {
    let (Some(first), Some(last)) = (curves.first(), curves.last()) else {
        return Point::zero();
    };
    let way = last.end.sub(first.start);
    let length = way.x.hypot(way.y).max(1.0);
    Point::new(-way.y / length * by, way.x / length * by)
}
