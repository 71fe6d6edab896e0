/** The part of the plane that the picture shows, in the user's units, and its numbers. */

const MARGIN = 0.17; // on each side, as a share of the range of the data
const MOST_STRETCH = 3; // ranges that differ more get axes of different scales
const CANVAS = 2.5; // half the height of the plane that one draws in; doubled while it is too small
const LARGEST_CANVAS = 20;

/**
 * A window for drawn points that does not move while one draws, and depends only on the points.
 * @param {Float64Array} X @param {number} aspect @returns {View | null} null if they lie too far out
 */
export function drawingView(X, aspect) {
	for (let y1 = CANVAS; y1 <= LARGEST_CANVAS; y1 *= 2) {
		const x1 = y1 * aspect;
		const inside = X.every((value, i) => Math.abs(value) <= (i % 2 ? y1 : x1));
		if (inside) return { x0: -x1, x1, y0: -y1, y1, equal: true };
	}
	return null;
}

/**
 * A window around the points; without points, around the scaler's mean.
 * @param {Float64Array} X @param {Scaler} scaler @param {number} aspect width / height
 * @returns {View}
 */
export function makeView(X, scaler, aspect) {
	const [x, y] = [0, 1].map((j) => range(X, j, scaler));
	const equal = Math.max(x.width / y.width, y.width / x.width) <= MOST_STRETCH;
	if (equal) {
		y.width = Math.max(y.width, x.width / aspect);
		x.width = y.width * aspect;
	}
	return {
		...{ x0: x.middle - x.width / 2, x1: x.middle + x.width / 2 },
		...{ y0: y.middle - y.width / 2, y1: y.middle + y.width / 2 },
		equal,
	};
}

/** @param {Float64Array} X @param {number} j @param {Scaler} scaler */
function range(X, j, { mean, scale }) {
	const column = X.filter((_, i) => i % 2 === j).sort();
	const [least, most] = [column[0], column[column.length - 1]];
	if (most > least) return { middle: (least + most) / 2, width: (most - least) * (1 + 2 * MARGIN) };
	return { middle: column[0] ?? mean[j], width: 5 * scale[j] };
}

/**
 * Round numbers for an axis, at most `most`.
 * @param {number} low @param {number} high @param {number} most
 */
export function ticks(low, high, most) {
	const rough = (high - low) / most;
	const power = 10 ** Math.floor(Math.log10(rough));
	const step = power * ([1, 2, 5].find((factor) => rough <= factor * power) ?? 10);
	const found = [];
	for (let i = Math.ceil(low / step); i * step <= high; i++) found.push(i * step);
	return found;
}

/** For people: a minus sign, and an exponent only if needed. @param {number} value */
export function number(value, digits = 3) {
	if (!Number.isFinite(value)) return "–";
	const size = Math.abs(value);
	const plain = size === 0 || (size < 1e6 && size >= 1e-4);
	const text = plain ? String(+value.toPrecision(digits)) : value.toExponential(digits - 1);
	return text.replace("-", "−");
}
