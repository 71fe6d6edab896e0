/** CSV files. */
import assert from "node:assert/strict";
import { test } from "node:test";

import {
	findColumns,
	parseCsv,
	sortedNames,
	tableData,
	writeCsv,
} from "../../../src/quadric/apps/playground/page/csv.js";

const IRIS = `sepal length,"petal, width",kind
5.1,0.2,setosa
7,1.4,versicolor

6.3,2.5,virginica
`;

test("a table is parsed, with its columns and classes", () => {
	const table = parseCsv(IRIS);
	assert.deepEqual(table.header, ["sepal length", "petal, width", "kind"]);
	assert.deepEqual(table.lines, [2, 3, 5]);
	assert.deepEqual(findColumns(table).numeric, [0, 1]);
	assert.deepEqual(findColumns(table).guess, [0, 1, 2]);
	const data = tableData(table, [0, 1], 2);
	assert.deepEqual(Array.from(data.X), [5.1, 0.2, 7, 1.4, 6.3, 2.5]);
	assert.deepEqual(Array.from(data.classes), [0, 1, 2]);
	assert.deepEqual(data.names, ["setosa", "versicolor", "virginica"]);
	assert.deepEqual(data.features, ["sepal length", "petal, width"]);
	assert.equal(data.skipped, 0);
});

test("quotes, line ends, tabs, a byte order mark and decimal commas", () => {
	const table = parseCsv('\uFEFFa;"b ""x""";c\r\n1,5;-2;"one\r\nmore"\r\n,5;1e3;other\r\n');
	assert.deepEqual(table.header, ["a", 'b "x"', "c"]);
	assert.deepEqual(table.rows[0][2], "one\r\nmore");
	assert.deepEqual(table.lines, [2, 4]);
	assert.deepEqual(Array.from(tableData(table, [0, 1], 2).X), [1.5, -2, 0.5, 1000]);
	assert.deepEqual(parseCsv("a\tb\n1\t2").rows, [["1", "2"]]);
	assert.deepEqual(parseCsv("a,b\r1,2\r").rows, [["1", "2"]]);
});

test("a table without names gets names", () => {
	const table = parseCsv("1,2,0\n3,4,1\n");
	assert.deepEqual(table.header, ["column 1", "column 2", "column 3"]);
	assert.equal(table.rows.length, 2);
});

test("rows with empty values are skipped and counted", () => {
	const data = tableData(parseCsv("a,b,c\n1,2,x\n,2,y\n3,4,\n5,6,y\n"), [0, 1], 2);
	assert.deepEqual(Array.from(data.X), [1, 2, 5, 6]);
	assert.equal(data.skipped, 2);
});

test("errors give the line", () => {
	assert.throws(() => parseCsv(""), /empty/);
	assert.throws(() => parseCsv("a,b\n"), /no rows/);
	assert.throws(() => parseCsv("a,b\n1,2\n1,2,3\n"), /Line 3 has 3 values, .* has 2/);
	assert.throws(() => parseCsv('a,b\n1,"2\n3,4\n'), /quotation marks in line 2 do not match/);
	assert.throws(() => parseCsv('a,b\n"1"2,3\n'), /quotation marks in line 2/);
	assert.deepEqual(parseCsv("a,b\n1,").rows, [["1", ""]]);
	const table = parseCsv("a,b,c\n1,2,x\n1,2.5.1,y\n");
	assert.deepEqual(findColumns(table).numeric, [0]);
	assert.throws(() => tableData(table, [0, 1], 2), /Line 3: b is "2.5.1", not a number/);
	assert.throws(() => tableData(table, [0, 0], 0), /2 to 8 different values .* "a" has 1/);
});

test("only columns with few values are classes, preferably text", () => {
	const rows = Array.from(
		{ length: 20 },
		(_, i) => `${i},${i % 3},${i % 2 ? "no" : "yes"},${i % 4}`,
	);
	const table = parseCsv(`a,b,c,d\n${rows.join("\n")}`);
	assert.deepEqual(findColumns(table).possible, [1, 2, 3]);
	assert.deepEqual(findColumns(table).guess, [0, 1, 2]);
});

test("a last column with many numbers is a target", () => {
	const rows = Array.from({ length: 20 }, (_, i) => `${i},${i % 3},${i * 1.5}`);
	const table = parseCsv(`area;rooms;price\n${rows.join("\n")}`.replaceAll(",", ";"));
	const { guess, isNumber } = findColumns(table);
	assert.deepEqual([guess, isNumber], [[0, 1, 2], true]);
	const data = tableData(table, [0, 1], 2, true);
	assert.deepEqual(Array.from(data.values).slice(0, 3), [0, 1.5, 3]);
	assert.deepEqual(data.names, ["price"]);
	assert.equal(writeCsv(data, [1]).split("\n")[2], "1,1,1.5,test");
	assert.equal(writeCsv(data).split("\n")[0], "area,rooms,target,set");
	const same = parseCsv("a,b,c\n1,2,5\n2,1,5\n");
	assert.throws(() => tableData(same, [0, 1], 2, true), /different values; "c" has one/);
	const broken = parseCsv("a,b,c\n1,2,5\n2,1,x\n");
	assert.throws(() => tableData(broken, [0, 1], 2, true), /Line 3: c is "x", not a number/);
});

test("a column of few numbers is a class, unless only numbers are left", () => {
	assert.equal(findColumns(parseCsv("a,b,c\n1,2,0\n2,1,1\n")).isNumber, false);
	const rows = Array.from({ length: 20 }, (_, i) => `${i},${2 * i},${i % 2 ? "x" : "y"},${3 * i}`);
	const { guess, isNumber } = findColumns(parseCsv(`a,b,c,d\n${rows.join("\n")}`));
	assert.deepEqual([guess, isNumber], [[0, 1, 2], false]);
});

test("classes are sorted as in Python", () => {
	assert.deepEqual(sortedNames(["10", "9", "-1"]), ["-1", "9", "10"]);
	assert.deepEqual(sortedNames(["10", "9", "x"]), ["10", "9", "x"]);
	assert.deepEqual(sortedNames(["b", "Ab", "A", "\u{1F642}", "\uFFFD"]), [
		...["A", "Ab", "b", "\uFFFD", "\u{1F642}"],
	]);
});

test("test_faults_R8_names_that_a_spreadsheet_would_evaluate_get_an_apostrophe", () => {
	const names = ["=1+1", "-1", "-x", "@a", "\tb", "\rc", "a;=2", 'say "hi"', "+4"];
	const text = writeCsv({
		X: new Float64Array(2 * names.length),
		classes: Int32Array.from(names.keys()),
		names,
		features: ['=HYPERLINK("a","b")', "+cmd|x"],
	});
	const [header, ...rows] = text.split("\n");
	assert.equal(header, `"'=HYPERLINK(""a"",""b"")",'+cmd|x,class,set`);
	const written = rows.slice(0, -1).map((row) => row.slice("0,0,".length, -",train".length));
	const quoted = ['"\'\tb"', '"\'\rc"', '"a;=2"', '"say ""hi"""', "+4"];
	assert.deepEqual(written, ["'=1+1", "-1", "'-x", "'@a", ...quoted]);
});
