/**
 * The arcs of a conic inside a window, as points of the curve rather than contours of a grid.
 * quadric/geometry/_plot_points.py explains the method.
 */

import { canonicalForm, combine, dot } from "./canonical_form.js";
import { gradient, inUnits, kindOf, onto } from "./conic.js";
import { nearest } from "./nearest.js";

const LONGEST = 1 / 20; // length of a segment, where the diagonal of the window is 2
const FLATTEST = 1e-4; // distance of the curve from a segment
const FIRST_ANGLES = 8;
const DEEPEST = 12; // how often a segment is halved

/**
 * @param {Conic} conic @param {Box} window
 * @returns {Float64Array[]} polylines x, y, x, y, ...; a single point has two entries
 */
export function arcs(conic, { x0, x1, y0, y1 }) {
	// coordinates in which the window is centered at the origin and its diagonal has length 2
	const half = Math.hypot(x1 - x0, y1 - y0) / 2;
	const middle = [(x0 + x1) / 2, (y0 + y1) / 2];
	const [x, y] = [(x1 - x0) / 2 / half, (y1 - y0) / 2 / half];
	const form = canonicalForm(conic);
	const mean = middle.map((one) => -one / half);
	const seen = inUnits(conic, { mean, scale: [1 / half, 1 / half] });
	// not the canonical form of `seen`, whose rounding errors could change the kind
	form.eigenvalues = [form.eigenvalues[0] * half * half, form.eigenvalues[1] * half * half];
	form.origin = [(form.origin[0] - middle[0]) / half, (form.origin[1] - middle[1]) / half];
	form.slope *= half;
	return pieces(seen, form, { x0: -x, x1: x, y0: -y, y1: y }).map((points) => {
		return Float64Array.from(points.flat(), (value, i) => middle[i % 2] + half * value);
	});
}

/** @param {Conic} conic @param {CanonicalForm} form @param {Box} view @returns {Point[][]} */
function pieces(conic, form, view) {
	const kind = kindOf(form);
	if (kind === "empty" || kind === "everything") return [];
	if (kind === "point") return isInside(form.origin, view) ? [[form.origin]] : [];
	if (!kind.includes("line")) return curve(conic, form, view);
	return lines(form, kind).flatMap(([point, direction]) => clip(point, direction, view));
}

/** @param {Conic} conic @param {CanonicalForm} form @param {Box} view */
function curve(conic, form, view) {
	const s = /** @type {Point} */ (nearest(conic, [0, 0]).point);
	// coordinates in which the curve is roughly round, so that angles are spread evenly
	const size = form.eigenvalues.map((one) => {
		const length = form.slope ? form.slope / one : Math.sqrt(Math.abs(form.level / one));
		return Math.min(Math.abs(length), 2);
	});
	const g = gradient(conic, ...s);
	const slope = form.directions.map((direction, i) => dot(direction, g) * size[i]);
	const D = form.eigenvalues.map((one, i) => one * size[i] ** 2);
	const tangent = Math.atan2(-slope[0], slope[1]);

	/** @param {number} angle @returns {Point} */
	const point = (angle) => {
		const e = [Math.cos(angle), Math.sin(angle)];
		const t = -(slope[0] * e[0] + slope[1] * e[1]) / (D[0] * e[0] ** 2 + D[1] * e[1] ** 2);
		const [dx, dy] = combine(form.directions, [t * e[0] * size[0], t * e[1] * size[1]]);
		return [s[0] + dx, s[1] + dy];
	};
	/** The angle of the chord from s to a point of the curve. @param {Point} x */
	const angleOf = (x) => {
		const [e0, e1] = form.directions.map((direction, i) => {
			return dot(direction, [x[0] - s[0], x[1] - s[1]]) / size[i];
		});
		return Math.max(Math.abs(e0), Math.abs(e1)) < 1e-14 ? tangent : Math.atan2(e1, e0);
	};

	const found = [...poles(D), ...crossings(conic, view).map(angleOf)];
	const breaks = (found.length ? found : [tangent]) // without breaks, one full turn from s to s
		.map((angle) => ((angle % Math.PI) + Math.PI) % Math.PI)
		.sort((a, b) => a - b);
	return breaks.flatMap((from, i) => {
		const to = breaks[i + 1] ?? breaks[0] + Math.PI;
		if (to - from <= 1e-12 || !isInside(point((from + to) / 2), view)) return [];
		return [sample(point, from, to).map((x) => onto(conic, x, 2e-6))];
	});
}

/** The angles at which D_1 cos^2 + D_2 sin^2 = 0. @param {number[]} D */
function poles([first, second]) {
	if (first * second > 0) return [];
	const angle = Math.atan2(Math.sqrt(Math.abs(first)), Math.sqrt(Math.abs(second)));
	return [angle, Math.PI - angle];
}

/** Where the curve crosses the sides of the window. @param {Conic} conic @param {Box} view */
function crossings({ Q, w, b }, { x0, x1, y0, y1 }) {
	/** @type {Point[]} */
	const vertical = [x0, x1].flatMap((x) => {
		return roots(Q[2], 2 * Q[1] * x + w[1], (Q[0] * x + w[0]) * x + b).map((y) => [x, y]);
	});
	/** @type {Point[]} */
	const horizontal = [y0, y1].flatMap((y) => {
		return roots(Q[0], 2 * Q[1] * y + w[0], (Q[2] * y + w[1]) * y + b).map((x) => [x, y]);
	});
	return [
		...vertical.filter(([, y]) => y >= y0 && y <= y1),
		...horizontal.filter(([x]) => x >= x0 && x <= x1),
	];
}

/**
 * The real solutions of a t^2 + h t + c = 0, computed without cancellation.
 * @param {number} a @param {number} h @param {number} c
 */
function roots(a, h, c) {
	const discriminant = h * h - 4 * a * c;
	if (discriminant < 0) return [];
	const half = -(h + (h < 0 ? -1 : 1) * Math.sqrt(discriminant)) / 2;
	const found = a ? [half / a] : [];
	return half ? [...found, c / half] : found;
}

/**
 * Points of the curve between two angles, denser where it bends.
 * @param {(angle: number) => Point} point @param {number} from @param {number} to
 */
function sample(point, from, to) {
	const points = [point(from)];
	/** @param {number} from @param {number} to @param {Point} end @param {number} depth */
	const add = (from, to, end, depth) => {
		const [x, y] = points[points.length - 1];
		const [dx, dy] = [end[0] - x, end[1] - y];
		const length = Math.hypot(dx, dy);
		const halfway = (from + to) / 2;
		const middle = point(halfway);
		const bend = Math.abs(dx * (middle[1] - y) - dy * (middle[0] - x)) / length;
		if (depth < DEEPEST && (length > LONGEST || bend > FLATTEST)) {
			add(from, halfway, middle, depth + 1);
			add(halfway, to, end, depth + 1);
		} else points.push(end);
	};
	for (let i = 0; i < FIRST_ANGLES; i++) {
		const [start, end] = [i, i + 1].map((k) => from + ((to - from) * k) / FIRST_ANGLES);
		add(start, end, point(end), 0);
	}
	return points;
}

/**
 * A point and the direction of each line.
 * @param {CanonicalForm} form @param {string} kind @returns {[Point, Point][]}
 */
function lines({ origin, directions, eigenvalues, level, flat }, kind) {
	if (kind === "line") return [[origin, directions[1 - flat]]];
	if (kind === "crossing lines") {
		const [first, second] = eigenvalues.map((one) => Math.sqrt(Math.abs(one)));
		return [1, -1].map((sign) => [origin, combine(directions, [second, sign * first])]);
	}
	const straight = eigenvalues[0] === 0 ? 0 : 1;
	const half = Math.sqrt(Math.abs(level / eigenvalues[1 - straight]));
	const [ax, ay] = directions[1 - straight];
	return (half ? [half, -half] : [0]).map((t) => {
		return [[origin[0] + t * ax, origin[1] + t * ay], directions[straight]];
	});
}

/**
 * The part of a line inside the window, in several segments because ties are cut between points.
 * @param {Point} point @param {Point} direction @param {Box} view @returns {Point[][]}
 */
function clip(point, direction, { x0, x1, y0, y1 }) {
	const length = Math.hypot(...direction);
	const unit = direction.map((one) => one / length);
	// a line along a side divides by zero: -Infinity and Infinity inside, both the same outside
	const t = [x0, x1, y0, y1].map((side, i) => (side - point[i >> 1]) / unit[i >> 1]);
	const low = Math.max(Math.min(t[0], t[1]), Math.min(t[2], t[3]));
	const high = Math.min(Math.max(t[0], t[1]), Math.max(t[2], t[3]));
	if (!(low < high)) return [];
	const count = Math.ceil((high - low) / LONGEST);
	return [
		Array.from({ length: count + 1 }, (_, i) => {
			const t = low + ((high - low) * i) / count;
			return [point[0] + t * unit[0], point[1] + t * unit[1]];
		}),
	];
}

/** @param {Point} x @param {Box} view */
function isInside([x, y], { x0, x1, y0, y1 }) {
	return x >= x0 && x <= x1 && y >= y0 && y <= y1;
}
