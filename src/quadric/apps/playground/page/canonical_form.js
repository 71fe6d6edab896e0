/**
 * The canonical form of a conic: its axes, its center or vertex, and the signs that name it.
 *
 * The decisions are those of quadric.geometry: a quantity counts as zero if changing the
 * coefficients by TOLERANCE, relative to the size of Q, of w and of b, could make it zero.
 */

export const TOLERANCE = 2e-14;
const STRAIGHT = 5e3; // how much a straight direction increases the tolerance
const EPS = 2 ** -52;

/** @param {Conic} conic @returns {CanonicalForm} */
export function canonicalForm({ Q, w, b }) {
	const size = Math.max(...Q.map(Math.abs));
	if (size === 0) return formOfLine(w, b);
	// units of length and of F in which Q, w and b are about 1, so that nothing overflows
	const length = Math.max(Math.abs(w[0]), Math.abs(w[1])) / size;
	const unit = Math.max(length, Math.sqrt(Math.abs(b) / size)) || 1;
	const scaled = scaledForm(
		[Q[0] / size, Q[1] / size, Q[2] / size],
		[w[0] / size / unit, w[1] / size / unit],
		b / size / unit / unit,
	);
	return {
		...scaled,
		eigenvalues: [scaled.eigenvalues[0] * size, scaled.eigenvalues[1] * size],
		origin: [scaled.origin[0] * unit, scaled.origin[1] * unit],
		level: scaled.level * size * unit * unit,
		slope: scaled.slope * size * unit,
	};
}

/**
 * The form of a conic whose coefficients have a magnitude of at most about 1.
 * @param {Conic["Q"]} Q @param {Point} w @param {number} b @returns {CanonicalForm}
 */
function scaledForm(Q, w, b) {
	const { eigenvalues, directions } = eigen(Q);
	const qSize = Math.max(Math.abs(eigenvalues[0]), Math.abs(eigenvalues[1]));
	const curved = eigenvalues.map((value) => Math.abs(value) > TOLERANCE * qSize);
	const along = directions.map((direction) => dot(direction, w));
	const c = eigenvalues.map((value, i) => (curved[i] ? -along[i] / (2 * value) : 0));
	const flat = curved[0] ? 1 : 0; // the straight direction, if there is one
	const straight = !curved[flat];
	if (straight) eigenvalues[flat] = 0;

	// A shift along a straight direction leaves rounding errors in w and b that the other
	// coefficients do not reveal.
	const tolerance = TOLERANCE * (straight ? STRAIGHT : 1);
	const distance = Math.hypot(c[0], c[1]);
	const wSize = Math.hypot(w[0], w[1]);
	let slope = straight ? along[flat] : 0;
	const slopeError = wSize + 2 * qSize * distance + 2 * Math.sqrt(qSize * Math.abs(b));
	let level = b + (along[0] * c[0] + along[1] * c[1]) / 2;
	const shift = Math.min(Math.abs(slope) / EPS / qSize, 1e150);
	const levelError = Math.abs(b) + wSize * distance + qSize * (distance ** 2 + shift ** 2);
	if (Math.abs(slope) > tolerance * slopeError) {
		c[flat] = -level / slope; // down the slope to F = 0: the vertex
		level = 0;
	} else {
		slope = 0;
		if (Math.abs(level) <= tolerance * levelError) level = 0;
	}
	return { eigenvalues, directions, origin: combine(directions, c), level, slope, flat };
}

/**
 * The eigenvalues of a symmetric matrix and their unit vectors, by one Jacobi rotation. It
 * computes small eigenvalues of badly scaled matrices accurately.
 * @param {Conic["Q"]} Q @returns {{eigenvalues: Point, directions: [Point, Point]}}
 */
function eigen([q11, q12, q22]) {
	let t = 0; // the tangent of the angle
	if (q12 !== 0) {
		const ratio = (q22 - q11) / (2 * q12);
		t = (ratio < 0 ? -1 : 1) / (Math.abs(ratio) + Math.hypot(1, ratio));
	}
	const cos = 1 / Math.hypot(1, t);
	const sin = t * cos;
	/** @type {[Point, Point]} */
	const directions = [
		[cos, -sin],
		[sin, cos],
	];
	return { eigenvalues: [q11 - t * q12, q22 + t * q12], directions };
}

/**
 * The form for Q = 0: a line, everything or nothing.
 * @param {Point} w @param {number} b @returns {CanonicalForm}
 */
function formOfLine(w, b) {
	const slope = Math.hypot(w[0], w[1]);
	/** @type {Point} */
	const across = slope ? [w[0] / slope, w[1] / slope] : [1, 0];
	return {
		eigenvalues: [0, 0],
		directions: [across, [-across[1], across[0]]],
		origin: slope ? [(-b / slope) * across[0], (-b / slope) * across[1]] : [0, 0],
		level: slope ? 0 : b,
		slope,
		flat: 0,
	};
}

/** @param {Point} x @param {Point} y */
export function dot(x, y) {
	return x[0] * y[0] + x[1] * y[1];
}

/**
 * y_1 directions[0] + y_2 directions[1]
 * @param {[Point, Point]} directions @param {number[]} y @returns {Point}
 */
export function combine([first, second], y) {
	return [first[0] * y[0] + second[0] * y[1], first[1] * y[0] + second[1] * y[1]];
}
