/**
 * Where to write the names of the boundaries: on the curve, inside the picture, apart from each
 * other, and close to where they were in the last frame. All lengths are in pixels.
 */

const HEIGHT = 24;
const FOLLOW = 28; // a label follows its curve while the curve moves less than this per frame
const CANDIDATES = 40; // per curve
const ENOUGH = 100; // room around a label

/**
 * @param {Label[]} labels @param {Map<string, Place>} last where the labels were; updated
 * @param {number} width of the picture @param {number} height
 * @param {Place[]} avoid points that should stay visible
 */
export function placeLabels(labels, last, width, height, avoid) {
	/** @type {(Label & Place)[]} */
	const placed = [];
	for (const label of labels) {
		const half = label.width / 2 + 4;
		const step = Math.ceil(label.places.length / CANDIDATES);
		const free = label.places.filter(({ x, y }, i) => {
			const inside = x >= half && x <= width - half && y >= HEIGHT && y <= height - 1.6 * HEIGHT;
			return (
				i % step === 0 && inside && !placed.some((other) => overlap({ ...label, x, y }, other))
			);
		});
		const before = last.get(label.key);
		const [near, far] = before ? nearestOf(free, before) : [-1, Infinity];
		const best = far < FOLLOW ? free[near] : emptiest(free, placed);
		if (!best) continue;
		last.set(label.key, best);
		placed.push({ ...label, ...best });
	}
	return placed;

	/** The place farthest from labels and points. @param {Place[]} places @param {Place[]} labels */
	function emptiest(places, labels) {
		const others = [...labels, ...avoid];
		const room = places.map((place) =>
			Math.min(ENOUGH, ...others.map((other) => distance(place, other))),
		);
		return places[room.indexOf(Math.max(...room))];
	}
}

/** @param {Place} a @param {Place} b */
const distance = (a, b) => Math.hypot(a.x - b.x, a.y - b.y);

/** Index and distance. @param {Place[]} places @param {Place} to */
export function nearestOf(places, to) {
	const distances = places.map((place) => distance(place, to));
	const least = distances.reduce((a, b) => Math.min(a, b), Infinity);
	return [distances.indexOf(least), least];
}

/** @param {Label & Place} a @param {Label & Place} b */
function overlap(a, b) {
	return Math.abs(a.x - b.x) < (a.width + b.width) / 2 + 6 && Math.abs(a.y - b.y) < HEIGHT + 4;
}
