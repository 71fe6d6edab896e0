/**
 * Zero lines of values on a grid, by marching squares.
 *
 * A line crosses an edge of the grid where the values at its ends have different signs. Each cell
 * connects the crossings of its four edges in pairs, and the pairs are joined.
 */

/**
 * @param {Float64Array} values by rows of nx
 * @param {number} nx
 * @returns {Float64Array[]} polylines x, y, x, y, ... in grid steps; closed ones end where they begin
 */
export function contours(values, nx) {
	const neighbors = connectCrossings(values, nx);
	/** @param {number} start */
	const follow = (start) => {
		const line = [];
		/** @type {number[]} */
		let others = [];
		for (let edge = /** @type {number | undefined} */ (start); edge !== undefined;) {
			line.push(edge);
			others = neighbors.get(edge) ?? [];
			neighbors.delete(edge);
			edge = others.find((other) => neighbors.has(other));
		}
		if (line.length > 2 && others.includes(start)) line.push(start);
		return Float64Array.from(line.flatMap((edge) => crossing(values, nx, edge)));
	};
	// Open lines are followed from an end, which has one neighbor.
	const ends = [...neighbors.keys()].filter((edge) => neighbors.get(edge)?.length === 1);
	return [...ends, ...neighbors.keys()].flatMap((edge) => {
		return neighbors.has(edge) ? [follow(edge)] : [];
	});
}

/**
 * The crossed edges, each with one or two neighbors on the line. Edge 2 i runs from grid point i to
 * the right, edge 2 i + 1 to the next row.
 * @param {Float64Array} values @param {number} nx
 */
function connectCrossings(values, nx) {
	/** @type {Map<number, number[]>} */
	const neighbors = new Map();
	for (let i = 0; i + nx < values.length; i++) {
		if (i % nx === nx - 1) continue; // no cell begins at the right edge
		const edges = cellCrossings(values, nx, i);
		edges.forEach((edge, e) => {
			neighbors.set(edge, [...(neighbors.get(edge) ?? []), edges[e ^ 1]]);
		});
	}
	return neighbors;
}

/**
 * The crossed edges of the cell whose first corner is grid point i, in connected pairs.
 * @param {Float64Array} values @param {number} nx @param {number} i
 */
function cellCrossings(values, nx, i) {
	const corners = [values[i], values[i + 1], values[i + nx + 1], values[i + nx]];
	const above = corners.map((corner) => corner > 0);
	const edges = [2 * i, 2 * (i + 1) + 1, 2 * (i + nx), 2 * i + 1]; // edge e joins corners e and e+1
	const crossed = edges.filter((_, e) => above[e] !== above[(e + 1) % 4]);
	if (crossed.length < 4) return crossed;
	// a saddle: the value in the middle decides which corners are connected
	const middle = corners.reduce((sum, corner) => sum + corner) > 0;
	return middle === above[0] ? edges : [edges[3], edges[0], edges[1], edges[2]];
}

/**
 * The point of an edge at which the values are zero.
 * @param {Float64Array} values @param {number} nx @param {number} edge
 */
function crossing(values, nx, edge) {
	const i = edge >> 1;
	const down = edge % 2;
	const share = values[i] / (values[i] - values[down ? i + nx : i + 1]);
	const [x, y] = [i % nx, Math.floor(i / nx)];
	return down ? [x, y + share] : [x + share, y];
}
