/** A small random generator (sfc32) that gives the same numbers in every browser. */

const TWO_32 = 4294967296;
const TWO_53 = 9007199254740992;

export class Random {
	/**
	 * @param {number} seed a non-negative integer
	 * @param {string} stream generators with the same seed and different streams are independent
	 */
	constructor(seed, stream = "") {
		this.a = 0;
		this.b = seed >>> 0;
		this.c = Math.floor(seed / TWO_32) >>> 0;
		this.counter = 1;
		for (let i = 0; i < stream.length; i++) {
			this.a = Math.imul(this.a ^ stream.charCodeAt(i), 0x01000193) >>> 0;
		}
		/** @type {number | null} the second number of the last pair that `normal` has drawn */
		this.spare = null;
		for (let i = 0; i < 16; i++) this.next();
	}

	/** The next unsigned integer of 32 bits. */
	next() {
		const sum = (this.a + this.b + this.counter) >>> 0;
		this.counter = (this.counter + 1) >>> 0;
		this.a = (this.b ^ (this.b >>> 9)) >>> 0;
		this.b = (this.c + (this.c << 3)) >>> 0;
		this.c = (((this.c << 21) | (this.c >>> 11)) + sum) >>> 0;
		return sum;
	}

	/** A number in [0, 1), with 53 random bits. */
	uniform() {
		const high = this.next() >>> 5;
		const low = this.next() >>> 6;
		return (high * 67108864 + low) / TWO_53;
	}

	/** An integer in [0, n), each equally likely. @param {number} n */
	integer(n) {
		const limit = TWO_32 - (TWO_32 % n); // numbers above would favor small remainders
		let drawn = this.next();
		while (drawn >= limit) drawn = this.next();
		return drawn % n;
	}

	/** A standard normal number, by Marsaglia's polar method. */
	normal() {
		const { spare } = this;
		this.spare = null;
		if (spare !== null) return spare;
		let u, v, s;
		do {
			u = 2 * this.uniform() - 1;
			v = 2 * this.uniform() - 1;
			s = u * u + v * v;
		} while (s >= 1 || s === 0);
		const factor = Math.sqrt((-2 * Math.log(s)) / s);
		this.spare = v * factor;
		return u * factor;
	}

	/** Puts an array into random order. @param {Int32Array} array */
	shuffle(array) {
		for (let i = array.length - 1; i > 0; i--) {
			const j = this.integer(i + 1);
			[array[i], array[j]] = [array[j], array[i]];
		}
	}
}
