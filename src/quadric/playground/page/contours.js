/**
 * Contour lines of values on a grid, by marching squares.
 *
 * A contour crosses an edge of the grid where the values at its ends are on different sides of the
 * level. Each cell connects the crossings of its four edges in pairs, and the pairs are joined.
 */

/**
 * @param {ArrayLike<number>} values ny rows of nx values
 * @param {number} nx @param {number} ny @param {number} level
 * @returns {Float64Array[]} polylines x, y, x, y, ... with x from 0 to nx - 1 and y from 0 to ny - 1;
 *   closed ones end where they begin
 */
export function contours(values, nx, ny, level = 0) {
	const neighbors = connectCrossings(values, nx, ny, level);
	/** @type {Float64Array[]} */
	const lines = [];
	const visited = new Set();
	/** @param {number} start */
	const follow = (start) => {
		const line = [start];
		visited.add(start);
		let next = neighbors.get(start)?.find((edge) => !visited.has(edge));
		while (next !== undefined) {
			line.push(next);
			visited.add(next);
			next = neighbors.get(next)?.find((edge) => !visited.has(edge));
		}
		const closed = line.length > 2 && neighbors.get(line[line.length - 1])?.includes(start);
		if (closed) line.push(start);
		const points = line.flatMap((edge) => crossing(values, nx, edge, level));
		lines.push(Float64Array.from(points));
	};
	for (const [edge, others] of neighbors)
		if (others.length === 1 && !visited.has(edge)) follow(edge);
	for (const edge of neighbors.keys()) if (!visited.has(edge)) follow(edge);
	return lines;
}

/**
 * The crossed edges, each with one or two neighbors on the contour. Edge 2 i runs from grid point i
 * to the right, edge 2 i + 1 to the next row.
 * @param {ArrayLike<number>} values @param {number} nx @param {number} ny @param {number} level
 */
function connectCrossings(values, nx, ny, level) {
	/** @type {Map<number, number[]>} */
	const neighbors = new Map();
	/** @param {number} edge @param {number} other */
	const add = (edge, other) => {
		const known = neighbors.get(edge);
		if (known) known.push(other);
		else neighbors.set(edge, [other]);
	};
	for (let row = 0; row + 1 < ny; row++) {
		for (let column = 0; column + 1 < nx; column++) {
			const i = row * nx + column;
			const edges = cellCrossings(values, nx, i, level);
			for (let pair = 0; pair < edges.length; pair += 2) {
				add(edges[pair], edges[pair + 1]);
				add(edges[pair + 1], edges[pair]);
			}
		}
	}
	return neighbors;
}

/**
 * The crossed edges of the cell whose first corner is grid point i, in connected pairs.
 * @param {ArrayLike<number>} values @param {number} nx @param {number} i @param {number} level
 */
function cellCrossings(values, nx, i, level) {
	const corners = [i, i + 1, i + nx + 1, i + nx];
	const above = corners.map((corner) => values[corner] > level);
	const edges = [2 * i, 2 * (i + 1) + 1, 2 * (i + nx), 2 * i + 1]; // edge e joins corners e and e+1
	const crossed = edges.filter((_, e) => above[e] !== above[(e + 1) % 4]);
	if (crossed.length < 4) return crossed;
	// a saddle: the value in the middle decides which corners are connected
	const middle = corners.reduce((sum, corner) => sum + values[corner], 0) / 4 > level;
	return middle === above[0]
		? [edges[0], edges[1], edges[2], edges[3]]
		: [edges[3], edges[0], edges[1], edges[2]];
}

/**
 * The point of an edge at which the values reach the level.
 * @param {ArrayLike<number>} values @param {number} nx @param {number} edge @param {number} level
 */
function crossing(values, nx, edge, level) {
	const i = edge >> 1;
	const down = edge % 2;
	const [from, to] = [values[i], values[down ? i + nx : i + 1]];
	const share = (level - from) / (to - from);
	const [x, y] = [i % nx, Math.floor(i / nx)];
	return down ? [x, y + share] : [x + share, y];
}
