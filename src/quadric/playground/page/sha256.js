/** SHA-256. The browser's own is not available on pages that are served without encryption. */

const PRIMES = firstPrimes(64);
const K = PRIMES.map((prime) => fractionBits(Math.cbrt(prime)));
const START = PRIMES.slice(0, 8).map((prime) => fractionBits(Math.sqrt(prime)));

/** @param {number} count */
function firstPrimes(count) {
	/** @type {number[]} */
	const primes = [];
	for (let n = 2; primes.length < count; n++) {
		if (primes.every((prime) => n % prime !== 0)) primes.push(n);
	}
	return primes;
}

/** The first 32 bits of the fractional part. @param {number} x */
function fractionBits(x) {
	return ((x - Math.floor(x)) * 4294967296) | 0;
}

/** The hash in hexadecimal. @param {Uint8Array} message */
export function sha256(message) {
	const padded = new Uint8Array(Math.ceil((message.length + 9) / 64) * 64);
	padded.set(message);
	padded[message.length] = 0x80;
	const words = new DataView(padded.buffer);
	words.setUint32(padded.length - 8, Math.floor(message.length / 2 ** 29));
	words.setUint32(padded.length - 4, message.length << 3);
	const state = Int32Array.from(START);
	const schedule = new Int32Array(64);
	for (let block = 0; block < padded.length; block += 64) {
		for (let i = 0; i < 16; i++) schedule[i] = words.getInt32(block + 4 * i);
		compress(state, schedule);
	}
	return Array.from(state, (word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
}

/** @param {number} word @param {number} bits */
function rotate(word, bits) {
	return (word >>> bits) | (word << (32 - bits));
}

/** @param {Int32Array} state @param {Int32Array} w the block in the first 16 entries */
function compress(state, w) {
	for (let i = 16; i < 64; i++) {
		const early = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ (w[i - 15] >>> 3);
		const late = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ (w[i - 2] >>> 10);
		w[i] = w[i - 16] + early + w[i - 7] + late;
	}
	let [a, b, c, d, e, f, g, h] = state;
	for (let i = 0; i < 64; i++) {
		const mix = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
		const first = (h + mix + ((e & f) ^ (~e & g)) + K[i] + w[i]) | 0;
		const sum = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
		const second = (sum + ((a & b) ^ (a & c) ^ (b & c))) | 0;
		[h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0];
	}
	[a, b, c, d, e, f, g, h].forEach((word, i) => (state[i] += word));
}
