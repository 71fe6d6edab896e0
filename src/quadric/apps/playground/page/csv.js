/** CSV text: values between commas, semicolons or tabs, quotes, and decimal commas. */

import { expect } from "./expect.js";
import { LIMITS } from "./settings.js";

/**
 * Throws an Error that gives the line number if the text is not a table. Without a line of names,
 * the columns are called "column 1", "column 2" and so on.
 * @param {string} text @returns {Table}
 */
export function parseCsv(text) {
	const content = text.replace(/^\uFEFF/, "");
	const delimiter = findDelimiter(content);
	const records = splitRecords(content, delimiter);
	expect(records.length > 0, "The file is empty.");
	const decimalComma = delimiter !== ",";
	const first = records[0].values;
	const isHeader = first.some((value) => Number.isNaN(toNumber(value, decimalComma)));
	const rows = isHeader ? records.slice(1) : records;
	expect(rows.length > 0, "The file has no rows below the line of names.");
	for (const { values, line } of rows) {
		const counts = `${values.length} values, but the first line has ${first.length}`;
		expect(values.length === first.length, `Line ${line} has ${counts}.`);
	}
	return {
		header: first.map((name, i) => (isHeader && name.trim()) || `column ${i + 1}`),
		rows: rows.map(({ values }) => values),
		lines: rows.map(({ line }) => line),
		decimalComma,
	};
}

/** The character that is most frequent in the first line, outside of quotes. @param {string} text */
function findDelimiter(text) {
	const line = text.replace(/"[^"]*"/g, "").split(/\r?\n|\r/, 1)[0];
	const candidates = [",", ";", "\t"];
	const counts = candidates.map((one) => line.split(one).length);
	return candidates[counts.indexOf(Math.max(...counts))];
}

/**
 * The values of each record and the line on which it begins.
 * @param {string} text @param {string} delimiter
 */
function splitRecords(text, delimiter) {
	// a value, quoted or not, and what ends it
	const plain = `[^"${delimiter}\\r\\n][^${delimiter}\\r\\n]*`;
	const ends = `${delimiter}|\\r\\n|\\r|\\n|$`;
	const field = new RegExp(`(?:"([^"]*(?:""[^"]*)*)"|(${plain})?)(${ends})`, "y");
	/** @type {{values: string[], line: number}[]} */
	const records = [];
	let record = { values: /** @type {string[]} */ ([]), line: 1 };
	for (let line = 1; field.lastIndex < text.length;) {
		const found = field.exec(text);
		expect(found, `The quotation marks in line ${line} do not match.`);
		const [, quoted = "", unquoted = "", end] = found;
		record.values.push(quoted.replaceAll('""', '"') || unquoted);
		line += quoted.split(/\r\n|\r|\n/).length - 1;
		if (end === delimiter && field.lastIndex < text.length) continue;
		if (end === delimiter) record.values.push(""); // the file ends after a delimiter
		if (record.values.some((value) => value.trim() !== "")) records.push(record);
		record = { values: [], line: ++line };
	}
	return records;
}

/**
 * @param {string} text @param {boolean} decimalComma
 * @returns {number} NaN if the text is not a finite number
 */
function toNumber(text, decimalComma) {
	const plain = decimalComma ? text.trim().replace(/^([^.,]*),([^.,]*)$/, "$1.$2") : text.trim();
	if (!/^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$/.test(plain)) return NaN;
	return Number.isFinite(Number(plain)) ? Number(plain) : NaN;
}

/**
 * Which columns can be features, because they hold only numbers and empty values, and which can be
 * classes: two to eight values. The guess for the target is the last column of classes that are no
 * numbers, else the last column if it has many numbers (`isNumber`), else the last one of classes.
 * @param {Table} table
 */
export function findColumns({ header, rows, decimalComma }) {
	const given = header.map((_, i) => rows.map((row) => row[i].trim()).filter((value) => value));
	const columns = [...header.keys()];
	const numeric = columns.filter((i) => {
		const numbers = given[i].map((value) => toNumber(value, decimalComma));
		return numbers.length > 0 && !numbers.some(Number.isNaN);
	});
	const possible = columns.filter((i) => {
		const count = new Set(given[i]).size;
		return count >= 2 && count <= LIMITS.classes;
	});
	const last = columns.length - 1;
	const many = numeric.includes(last) && !possible.includes(last);
	const number = many || !possible.length ? numeric.at(-1) : -1;
	const text = possible.findLast((i) => !numeric.includes(i));
	const target = text ?? (many ? last : possible.at(-1)) ?? number ?? -1;
	const [first = -1, second = -1] = numeric.filter((i) => i !== target);
	return { numeric, possible, guess: [first, second, target], isNumber: target === number };
}

/**
 * The points of three columns. Rows with an empty value are skipped and counted. Throws an Error
 * with the line number of a value that is not a number.
 * @param {Table} table @param {[number, number]} features @param {number} target
 * @param {boolean} [isNumber] whether the target is a number, and not a class
 * @returns {Data & {skipped: number}}
 */
export function tableData(table, features, target, isNumber = false) {
	const { header, rows, lines, decimalComma } = table;
	const columns = [...features, target];
	const complete = [...rows.keys()].filter((i) => columns.every((c) => rows[i][c].trim() !== ""));
	const skipped = rows.length - complete.length;
	/** @param {number} i @param {number} column */
	const numberAt = (i, column) => {
		const value = toNumber(rows[i][column], decimalComma);
		const problem = `${header[column]} is "${rows[i][column].trim()}", not a number`;
		expect(!Number.isNaN(value), `Line ${lines[i]}: ${problem}.`);
		return value;
	};
	const X = Float64Array.from(
		complete.flatMap((i) => features.map((column) => numberAt(i, column))),
	);
	const found = { X, features: features.map((column) => header[column]), skipped };
	if (isNumber) {
		const values = Float64Array.from(complete, (i) => numberAt(i, target));
		const varies = new Set(values).size > 1;
		expect(varies, `Choose a target with different values; "${header[target]}" has one.`);
		return { ...found, values, classes: new Int32Array(values.length), names: [header[target]] };
	}
	const labels = complete.map((i) => rows[i][target].trim());
	const names = sortedNames(new Set(labels));
	const wanted = `Choose a column with 2 to ${LIMITS.classes} different values as the class`;
	const fits = names.length >= 2 && names.length <= LIMITS.classes;
	expect(fits, `${wanted}; "${header[target]}" has ${names.length}.`);
	return { ...found, names, classes: Int32Array.from(labels, (label) => names.indexOf(label)) };
}

/**
 * Whole numbers in increasing order, other names in the order of Python's strings.
 * @param {Iterable<string>} names
 */
export function sortedNames(names) {
	const list = [...names];
	if (list.every(isWholeNumber)) return list.sort((a, b) => Number(a) - Number(b));
	/** @param {string} name */
	const key = (name) => Array.from(name, (c) => String(c.codePointAt(0)).padStart(7)).join();
	return list.sort((a, b) => (key(a) < key(b) ? -1 : 1));
}

/** Whether a name is the usual way to write a whole number. @param {string} name */
export function isWholeNumber(name) {
	return /^(0|-?[1-9]\d{0,14})$/.test(name);
}

/**
 * The data as CSV, with the class or target, and whether a sample is for training or for testing.
 * Names that a spreadsheet would evaluate get an apostrophe, as in Python.
 * @param {Data} data @param {Iterable<number>} [test] rows of the test set
 */
export function writeCsv({ X, classes, names, features, values }, test = []) {
	/** @param {string} text */
	const quote = (text) => {
		const isFormula = /^[=+\-@\t\r\n]/.test(text) && Number.isNaN(toNumber(text, false));
		const safe = isFormula ? `'${text}` : text;
		return /[",;\t\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
	};
	const isTest = new Set(test);
	const rows = Array.from(classes, (k, i) => {
		const target = values ? values[i] : quote(names[k]);
		return [X[2 * i], X[2 * i + 1], target, isTest.has(i) ? "test" : "train"].join(",");
	});
	return [[...features.map(quote), values ? "target" : "class", "set"].join(","), ...rows, ""].join(
		"\n",
	);
}
