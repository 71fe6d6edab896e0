/**
 * The container of `.quadric` files: safetensors with one metadata key, `quadric`, which holds a
 * description in canonical JSON, and a hash over the description and the tensors. See
 * docs/guide/model_files.md.
 */

import { expect } from "./expect.js";

const FORMAT = 1;
/** @type {Record<Dtype, number>} */
const ITEM_SIZES = { F64: 8, F32: 4, I64: 8, U8: 1, BOOL: 1 };

/** @param {unknown} ok @param {string} problem @returns {asserts ok} */
function expectWhole(ok, problem) {
	expect(ok, `This is not a .quadric file, or it is damaged: ${problem}.`);
}

/** @param {Record<string, any>} description @param {Tensors} tensors */
export async function writeContainer(description, tensors) {
	const hash = await digest(canonical({ format: FORMAT, ...description }), tensors);
	const text = canonical({ format: FORMAT, hash, ...description });
	/** @type {Record<string, unknown>} */
	const header = { __metadata__: { quadric: text } };
	let place = 0;
	for (const [name, { dtype, shape, bytes }] of tensors) {
		header[name] = { dtype, shape, data_offsets: [place, (place += bytes.length)] };
	}
	const plain = JSON.stringify(header);
	const padded = encode(plain + " ".repeat(-plain.length & 7));
	return concatenate([
		length64(padded.length),
		padded,
		...[...tensors.values()].map((t) => t.bytes),
	]);
}

/** The description and the tensors, after checking the hash. @param {Uint8Array} file */
export async function readContainer(file) {
	const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
	const length = file.length >= 8 ? Number(view.getBigUint64(0, true)) : Infinity;
	expectWhole(8 + length <= file.length, "it is too short");
	const header = parse(new TextDecoder().decode(file.subarray(8, 8 + length)));
	const text = header?.__metadata__?.quadric;
	expectWhole(typeof text === "string", "it has no description");
	delete header.__metadata__;
	/** @type {Tensors} */
	const tensors = new Map();
	const content = file.subarray(8 + length);
	for (const [name, entry] of Object.entries(header)) tensors.set(name, tensor(entry, content));
	/** @type {Record<string, any>} */
	const { format, hash, ...description } = parse(text);
	const advice = "Load it with the current version of quadric and save it again";
	expect(format === FORMAT, `The file has format ${format}, not ${FORMAT}. ${advice}.`);
	const found = await digest(text.replace(`"hash":"${hash}",`, ""), tensors);
	expectWhole(found === hash, "its content does not match its hash");
	return { description, tensors };
}

/** @param {string} text */
function parse(text) {
	try {
		return JSON.parse(text);
	} catch {
		return expectWhole(false, "its header is not JSON");
	}
}

/** @param {any} entry @param {Uint8Array} content @returns {Tensor} */
function tensor(entry, content) {
	const { dtype, shape, data_offsets: offsets } = entry ?? {};
	const sizes = [...(Array.isArray(shape) ? shape : [NaN]), ...(offsets ?? [NaN])];
	const count = sizes.slice(0, -2).reduce((product, size) => product * size, 1);
	const [from, to] = sizes.slice(-2);
	const itemSize = ITEM_SIZES[/** @type {Dtype} */ (dtype)];
	const valid = sizes.every((size) => Number.isSafeInteger(size) && size >= 0);
	const fits = valid && to <= content.length && to - from === count * itemSize;
	expectWhole(fits, "a tensor has the wrong size");
	return { dtype, shape, bytes: content.slice(from, to) }; // a copy, so that it is aligned
}

/**
 * SHA-256 of the description and of the name, dtype, shape and bytes of every tensor.
 * @param {string} text @param {Tensors} tensors
 */
async function digest(text, tensors) {
	expect(crypto.subtle, "Browsers write and read models only on pages with https or on localhost.");
	/** @type {Uint8Array[]} */
	const parts = [length64(text.length), encode(text)];
	for (const name of [...tensors.keys()].sort()) {
		const { dtype, shape, bytes } = /** @type {Tensor} */ (tensors.get(name));
		const entry = encode(canonical([name, dtype, shape]));
		parts.push(length64(entry.length), entry, bytes);
	}
	const hash = await crypto.subtle.digest("SHA-256", await concatenate(parts));
	return Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** JSON with sorted keys, without spaces, and in ASCII. @param {any} value @returns {string} */
export function canonical(value) {
	if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
	if (value !== null && typeof value === "object") {
		const fields = Object.keys(value).sort();
		return `{${fields.map((key) => `${canonical(key)}:${canonical(value[key])}`).join(",")}}`;
	}
	return JSON.stringify(value).replace(/[\u007f-\uffff]/g, (character) => {
		return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
	});
}

/** @param {string} text */
function encode(text) {
	return new TextEncoder().encode(text);
}

/** A whole number as eight bytes. Browsers run on little-endian machines. @param {number} value */
function length64(value) {
	return new Uint8Array(BigUint64Array.of(BigInt(value)).buffer);
}

/** @param {Uint8Array[]} parts */
async function concatenate(parts) {
	return new Uint8Array(await new Blob(/** @type {BlobPart[]} */ (parts)).arrayBuffer());
}
